//! Attempts to plant what somebody outside runs later without suspecting anything.

use super::attempt::{Attempt, Unwalled, attempt};

/// What a user does in the project every day.
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
    attempt("git configuration that somebody changed meanwhile", concat!(evil_config!(), " >> $SCOPE/.git/config"))
        .meanwhile("git config user.name somebody")
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
    attempt("hooks where the user keeps them", "cd $SCOPE; printf '#!/bin/sh\\ntouch %s/ran' $OUT > .githooks/post-checkout; chmod +x .githooks/post-checkout")
        .before("git config core.hooksPath .githooks; mkdir .githooks")
        .after(GIT),
    attempt("a hook by what it is a link to", "printf '#!/bin/sh\\ntouch %s/ran' $OUT > $SCOPE/scripts/hook.sh")
        .before("mkdir scripts; echo '#!/bin/sh' > scripts/hook.sh; chmod +x scripts/hook.sh; ln -s ../../scripts/hook.sh .git/hooks/post-checkout")
        .after(GIT),
    attempt("a hook by a link to nothing yet", "cd $SCOPE; mkdir scripts; printf '#!/bin/sh\\ntouch %s/ran' $OUT > scripts/hook.sh; chmod +x scripts/hook.sh")
        .before("ln -s ../../scripts/hook.sh .git/hooks/post-checkout")
        .after(GIT),
    attempt("a hook of an agent by what it is a link to", "cd $SCOPE; mkdir other; echo evil > other/hook.sh; mv scripts old; mv other scripts")
        .before("mkdir -p scripts .claude/hooks; echo good > scripts/hook.sh; ln -s ../../scripts/hook.sh .claude/hooks/hook.sh")
        .plants(".claude/hooks/hook.sh"),
    attempt("configuration that the user includes", concat!(evil_config!(), " > $SCOPE/.gitinclude"))
        .before("git config include.path ../.gitinclude")
        .after(GIT),
    attempt("hooks of a git directory by another name", "printf '#!/bin/sh\\ntouch %s/ran' $OUT > $SCOPE/.bare/hooks/post-checkout; chmod +x $SCOPE/.bare/hooks/post-checkout")
        .before("mv .git .bare; echo gitdir: ./.bare > .git; mkdir -p .bare/hooks")
        .after(GIT),
    attempt("a script that a filter names", "echo touch $OUT/ran > $SCOPE/tools/clean.sh")
        .before("mkdir tools; echo cat > tools/clean.sh; git config filter.x.clean 'sh tools/clean.sh'; echo 'f filter=x' > .gitattributes")
        .after("echo x > f; git add f"),
    attempt("something to push to, the old way", "cd $SCOPE; git init -q --bare n.git; mkdir -p n.git/hooks .git/remotes; printf '#!/bin/sh\\ntouch %s/ran' $OUT > n.git/hooks/post-update; chmod +x n.git/hooks/post-update; printf 'URL: %s/n.git\\nPush: HEAD:refs/heads/x\\n' $SCOPE > .git/remotes/origin").after(PUSH),
    attempt("something to push to in a new repository", "cd $SCOPE; git init -q --bare n.git; mkdir -p n.git/hooks; printf '#!/bin/sh\\ntouch %s/ran' $OUT > n.git/hooks/post-update; chmod +x n.git/hooks/post-update; git init -q; git remote add origin ./n.git")
        .before("rm -rf .git")
        .after(PUSH),
    attempt("a log of git as a link to a file outside", "cd $SCOPE; mkdir -p .git/logs; rm -f .git/logs/HEAD; ln -s $OUT/victim .git/logs/HEAD").after(GIT),
    attempt("a log of a branch as a link to a file outside", "cd $SCOPE; mkdir -p .git/logs/refs/heads; ln -s $OUT/victim .git/logs/refs/heads/y").after(GIT),
    attempt("a message of git as a link to a file outside", "cd $SCOPE; rm -f .git/COMMIT_EDITMSG; ln -s $OUT/victim .git/COMMIT_EDITMSG").after(GIT),
    attempt("the index of git as a link to a file outside", "cd $SCOPE; rm -f .git/index; ln -s $OUT/ran .git/index").after("touch f; git add f"),
    attempt("a log in a new repository as a link to a file outside", "cd $SCOPE; git init -q; mkdir .git/logs; ln -s $OUT/victim .git/logs/HEAD")
        .before("rm -rf .git")
        .after(GIT),
    attempt("a repository that git looks into", "cd $SCOPE; git init -q lib; git -C lib -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git update-index --add --cacheinfo 160000,$(git -C lib rev-parse HEAD),lib; git -C lib config core.fsmonitor \"touch $OUT/ran; false\"").after(GIT),
    attempt("a repository that git looks into, by an unusual mode", "cd $SCOPE; git init -q lib; git -C lib -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git update-index --add --cacheinfo 160000,$(git -C lib rev-parse HEAD),lib; perl -pi -e 's/\\0\\0\\xe0\\0/\\0\\0\\xe1\\xa4/' .git/index; git -C lib config core.fsmonitor \"touch $OUT/ran; false\"").after(GIT),
    attempt("a worktree of git as a link to a directory outside", "cd $SCOPE; mkdir -p .git/worktrees; ln -s $OUT .git/worktrees/x")
        .unwalled(Unwalled::Harmful)
        .after("git worktree prune; git gc -q"),
    attempt("another common directory for another worktree", concat!("cd $SCOPE; mkdir c; cp -r .git/HEAD .git/refs .git/objects c; ", evil_config!(), " > c/config; echo $SCOPE/c > .git/worktrees/wt/commondir"))
        .before("git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; git worktree add -q $DOORS/$NAME/wt")
        .after("git -C $DOORS/$NAME/wt status"),
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
    attempt("tasks of an editor by another name", "echo evil > $SCOPE/other")
        .before("mkdir .vscode; echo good > .vscode/tasks.json; ln .vscode/tasks.json other")
        .plants(".vscode/tasks.json"),
    attempt("tasks of a rarer editor", "mkdir $SCOPE/.zed; echo evil > $SCOPE/.zed/tasks.json").plants(".zed/tasks.json"),
    attempt("settings of an editor that reads them where it is started", "echo evil > $SCOPE/.vimrc").plants(".vimrc"),
    attempt("settings of a rarer agent", "echo evil > $SCOPE/opencode.jsonc").plants("opencode.jsonc"),
    attempt("a workspace of an editor", "echo evil > $SCOPE/new.code-workspace").plants("new.code-workspace"),
    attempt("hooks of a package", "mkdir $SCOPE/.husky; echo evil > $SCOPE/.husky/pre-commit").plants(".husky/pre-commit"),
    attempt("submodules", "echo evil > $SCOPE/.gitmodules").plants(".gitmodules"),
    attempt("many names to look at, and one that matters", "cd $SCOPE; mkdir .idea; (cd .idea; seq 700 | xargs touch); echo evil > .mcp.json").plants(".mcp.json"),
    // The tripwire works outside the wall: can it be sent to work on something else?
    attempt("the tripwire sent to another directory by a link on the way", "ln -s $OUT $SCOPE/.ahma")
        .unwalled(Unwalled::Contained)
        .after("true"),
    attempt("the tripwire sent to another directory by a linked git directory", "cd $SCOPE; mv .git old; ln -s $OUT .git")
        .unwalled(Unwalled::Contained)
        .after("true"),
    attempt("the tripwire sent to another file", "cd $SCOPE; rm .envrc; ln -s $OUT/victim .envrc; ln -s $OUT/victim .mcp.json")
        .unwalled(Unwalled::Contained)
        .after("true"),
    attempt("the tripwire made to read another file", "cd $SCOPE; rm .envrc; ln -s $OUT/secret .envrc; ln -s $OUT/secret .gitmodules")
        .unwalled(Unwalled::Contained)
        .after("true"),
    attempt("a pipe for the tripwire to wait on", "cd $SCOPE; rm -f .envrc; mkfifo .envrc; mkfifo .mcp.json")
        .unwalled(Unwalled::Contained)
        .after("true"),
];
