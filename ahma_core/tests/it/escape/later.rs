//! Attempts to plant what an unsuspecting user runs later.

use super::attempt::{Attempt, Unconfined, attempt};

/// Everyday work of a user in the project.
const GIT: &str = "git status; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git branch y; git checkout -q y; git gc -q";

const PUSH: &str =
    "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git push -q origin HEAD:refs/heads/x";

/// Prints a configuration that makes git run something.
macro_rules! evil_config {
    () => {
        "printf '[core]\\n\\tfsmonitor = touch %s/ran; false\\n' $OUT"
    };
}

pub(super) const LATER: &[Attempt] = &[
    attempt("a git hook", "cd $SCOPE; for h in pre-commit post-checkout reference-transaction; do printf '#!/bin/sh\\ntouch %s/ran' $OUT > .git/hooks/$h; chmod +x .git/hooks/$h; done").after(GIT),
    attempt("git configuration", concat!(evil_config!(), " >> $SCOPE/.git/config")).after(GIT),
    attempt("git configuration by rename", concat!(evil_config!(), " > c; mv c $SCOPE/.git/config")).after(GIT),
    attempt("git configuration by git", "git -C $SCOPE config core.fsmonitor \"touch $OUT/ran; false\"").after(GIT),
    attempt("git configuration that the user changed meanwhile", concat!(evil_config!(), " >> $SCOPE/.git/config"))
        .meanwhile("git config user.name user")
        .after(GIT),
    attempt("another directory of hooks", "cd $SCOPE; mkdir h; printf '#!/bin/sh\\ntouch %s/ran' $OUT > h/post-checkout; chmod +x h/post-checkout; printf '[core]\\nhooksPath = h\\n' >> .git/config").after(GIT),
    attempt("another common directory", concat!("cd $SCOPE; mkdir c; cp -r .git/HEAD .git/refs .git/objects c; ", evil_config!(), " > c/config; echo ../c > .git/commondir")).after(GIT),
    attempt("a swapped git directory", concat!("cd $SCOPE; cp -r .git g; ", evil_config!(), " >> g/config; mv .git old; mv g .git")).after(GIT),
    attempt("a linked git directory", concat!("cd $SCOPE; cp -r .git g; ", evil_config!(), " >> g/config; mv .git old; ln -s g .git")).after(GIT),
    attempt("a git file instead of the directory", concat!("cd $SCOPE; cp -r .git g; ", evil_config!(), " >> g/config; mv .git old; echo gitdir: g > .git")).after(GIT),
    attempt("git configuration of the worktree", concat!("cd $SCOPE; printf '[extensions]\\nworktreeConfig = true\\n' >> .git/config; ", evil_config!(), " > .git/config.worktree")).after(GIT),
    attempt("hooks without rights to look", "cd $SCOPE; printf '#!/bin/sh\\ntouch %s/ran' $OUT > .git/hooks/post-checkout; chmod 711 .git/hooks/post-checkout; chmod 311 .git/hooks").after(GIT),
    attempt("a new repository with a hook", "cd $SCOPE; rm -rf .git; git init -q; printf '#!/bin/sh\\ntouch %s/ran' $OUT > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout").after(GIT),
    attempt("a new repository with a setting behind a header", "cd $SCOPE; git init -q; printf '[core] fsmonitor = touch %s/ran; false #]\\n' $OUT >> .git/config")
        .before("rm -rf .git")
        .after(GIT),
    attempt("something to push to, the old way", "cd $SCOPE; git init -q --bare n.git; mkdir -p n.git/hooks .git/remotes; printf '#!/bin/sh\\ntouch %s/ran' $OUT > n.git/hooks/post-update; chmod +x n.git/hooks/post-update; printf 'URL: %s/n.git\\nPush: HEAD:refs/heads/x\\n' $SCOPE > .git/remotes/origin").after(PUSH),
    attempt("something to push to in a new repository", "cd $SCOPE; git init -q --bare n.git; mkdir -p n.git/hooks; printf '#!/bin/sh\\ntouch %s/ran' $OUT > n.git/hooks/post-update; chmod +x n.git/hooks/post-update; git init -q; git remote add origin ./n.git")
        .before("rm -rf .git")
        .after(PUSH),
    attempt("another common directory for a linked worktree", concat!("cd $SCOPE; G=$(sed 's/gitdir: //' .git); mkdir c; cp -r $G/../../refs $G/../../objects c; ", evil_config!(), " > c/config; echo $SCOPE/c > $G/commondir"))
        .before("M=$DOORS/$NAME; rm -rf .git; git init -q $M; cd $M; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git worktree add -q wt; mv wt/.git $SCOPE; echo $SCOPE/.git > .git/worktrees/wt/gitdir")
        .after("git status"),
    attempt("the scope as a repository", "cd $SCOPE; mkdir objects refs; echo ref: refs/heads/main > HEAD; printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = touch %s/ran; false\\n' $OUT > config")
        .before("rm -rf .git")
        .after("git status"),
    attempt("a tool file", "mkdir -p $SCOPE/.ahma/tools; echo evil > $SCOPE/.ahma/tools/evil.json").plants(".ahma/tools/evil.json"),
    attempt("a tool file behind a link", "mkdir -p $SCOPE/e/tools; echo evil > $SCOPE/e/tools/evil.json; ln -s e $SCOPE/.ahma").plants(".ahma/tools/evil.json"),
    attempt("tasks of an editor", "mkdir $SCOPE/.vscode; echo evil > $SCOPE/.vscode/tasks.json").plants(".vscode/tasks.json"),
    attempt("tasks of an editor, locked", "mkdir $SCOPE/.vscode; echo evil > $SCOPE/.vscode/tasks.json; chmod 555 $SCOPE/.vscode $SCOPE").plants(".vscode/tasks.json"),
    attempt("tasks of an editor behind a closed scope", "mkdir $SCOPE/.vscode; echo evil > $SCOPE/.vscode/tasks.json; chmod 0 $SCOPE").plants(".vscode/tasks.json"),
    attempt("an environment file behind a closed scope", "echo evil > $SCOPE/.envrc; chmod 111 $SCOPE").plants(".envrc"),
    attempt("settings of an agent whose directory holds much", "echo evil > $SCOPE/.claude/settings.json")
        .before("mkdir -p .claude/worktrees; cd .claude/worktrees; seq 600 | xargs touch")
        .plants(".claude/settings.json"),
    attempt("settings of an agent", "mkdir $SCOPE/.claude; echo evil > $SCOPE/.claude/settings.json").plants(".claude/settings.json"),
    attempt("servers of an agent", "echo evil > $SCOPE/.mcp.json").plants(".mcp.json"),
    attempt("an environment file that exists", "echo evil >> $SCOPE/.envrc").plants(".envrc"),
    attempt("an environment file by hard link", "ln $SCOPE/.envrc h; echo evil >> h; echo evil >> $SCOPE/.envrc").plants(".envrc"),
    attempt("an environment file by rename", "echo evil > h; mv h $SCOPE/.envrc").plants(".envrc"),
    attempt("a link on the way to an environment file", "cd $SCOPE; mkdir conf/v2; echo evil > conf/v2/envrc; ln -sfn v2 conf/current")
        .before("mkdir -p conf/v1; echo good > conf/v1/envrc; ln -s v1 conf/current; ln -sf conf/current/envrc .envrc")
        .plants(".envrc"),
    attempt("tasks of a rarer editor", "mkdir $SCOPE/.zed; echo evil > $SCOPE/.zed/tasks.json").plants(".zed/tasks.json"),
    attempt("settings of an editor that reads them where it is started", "echo evil > $SCOPE/.vimrc").plants(".vimrc"),
    attempt("settings of a rarer agent", "echo evil > $SCOPE/opencode.jsonc").plants("opencode.jsonc"),
    attempt("hooks of a package", "mkdir $SCOPE/.husky; echo evil > $SCOPE/.husky/pre-commit").plants(".husky/pre-commit"),
    attempt("submodules", "echo evil > $SCOPE/.gitmodules").plants(".gitmodules"),
    attempt("many names to look at, and one that matters", "cd $SCOPE; mkdir .idea; (cd .idea; seq 700 | xargs touch); echo evil > .mcp.json").plants(".mcp.json"),
    // The guard works outside the sandbox: can it be sent to work on something else?
    attempt("the guard sent to another directory by a link on the way", "ln -s $OUT $SCOPE/.ahma")
        .unconfined(Unconfined::Contained)
        .after("true"),
    attempt("the guard sent to another directory by a linked git directory", "cd $SCOPE; mv .git old; ln -s $OUT .git")
        .unconfined(Unconfined::Contained)
        .after("true"),
    attempt("the guard sent to another file", "cd $SCOPE; rm .envrc; ln -s $OUT/victim .envrc; ln -s $OUT/victim .mcp.json")
        .unconfined(Unconfined::Contained)
        .after("true"),
    attempt("the guard made to read another file", "cd $SCOPE; rm .envrc; ln -s $OUT/secret .envrc; ln -s $OUT/secret .gitmodules")
        .unconfined(Unconfined::Contained)
        .after("true"),
    attempt("a pipe for the guard to wait on", "cd $SCOPE; rm -f .envrc; mkfifo .envrc; mkfifo .mcp.json")
        .unconfined(Unconfined::Contained)
        .after("true"),
];
