//! Attempts on files.

use super::attempt::{Attempt, Needs, Unconfined, attempt};

pub(super) const FILES: &[Attempt] = &[
    attempt("read directly", "cat $OUT/secret"),
    attempt("read by a relative path", "cat \"$(realpath -m --relative-to=. $OUT)/secret\""),
    attempt("read through a link", "ln -s $OUT/secret l; cat l"),
    attempt("read through a linked directory", "ln -s $OUT d; cat d/secret"),
    attempt("read through a link made before", "cat $SCOPE/made-before/secret")
        .before("ln -s $OUT made-before"),
    attempt("write through a link made before", "echo x > $SCOPE/made-before/victim")
        .before("ln -s $OUT made-before"),
    attempt("read through a hard link", "ln $OUT/secret h; cat h"),
    attempt("write through a hard link", "ln $OUT/victim h; echo x > h"),
    attempt("overwrite", "echo x > $OUT/victim"),
    attempt("append", "echo x >> $OUT/victim"),
    attempt("create", "echo x > $OUT/new"),
    attempt("create by exclusive open", "set -C; echo x > $OUT/new"),
    attempt("make a directory", "mkdir $OUT/new"),
    attempt("make a link outside", "ln -s x $OUT/new"),
    attempt("make a pipe outside", "mkfifo $OUT/new"),
    attempt("remove", "rm -f $OUT/victim"),
    attempt("remove a directory", "rmdir $OUT/empty"),
    attempt("fetch by rename", "mv $OUT/secret fetched; cat fetched"),
    attempt("place by rename", "echo x > f; mv f $OUT/planted"),
    attempt(
        "exchange",
        "echo x > f; python3 -c 'import ctypes,os; ctypes.CDLL(None).renameat2(-100, b\"f\", -100, os.environ[\"OUT\"].encode()+b\"/victim\", 2)'",
    ),
    attempt("rename the scope", "mv $SCOPE $SCOPE-moved").after("test -d $SCOPE || touch $OUT/moved"),
    attempt("truncate", "python3 -c 'import os; os.truncate(os.environ[\"OUT\"]+\"/victim\", 0)'"),
    attempt(
        "truncate by opening to read",
        "python3 -c 'import os; os.open(os.environ[\"OUT\"]+\"/victim\", os.O_RDONLY|os.O_TRUNC)'",
    ),
    attempt("change a mode", "chmod 777 $OUT/victim"),
    attempt("change the mode of a readable file", "chmod 666 ~/.gitconfig"),
    attempt("change the times of a device", "s() { stat -c %.9Y /dev/full; }; t=$(s); touch /dev/full; test $t = $(s) || echo 'they changed'").says("they changed\n"),
    attempt("change a mode through a link", "ln -s $OUT/victim l; chmod 777 l"),
    attempt("change a mode through an own descriptor", "exec 5< ~/.gitconfig; chmod 640 /proc/self/fd/5; chmod 604 /dev/fd/5"),
    attempt(
        "change a mode by descriptor",
        "python3 -c 'import os; os.fchmod(os.open(os.path.expanduser(\"~/.gitconfig\"), os.O_RDONLY), 0o620)'",
    ),
    attempt("change a mode from another directory", "cd $OUT && chmod 777 victim"),
    attempt("change a mode of what lies above", "chmod 777 $SCOPE/../outside/*/victim"),
    attempt(
        "change a mode while the path changes",
        "echo > inside; python3 - <<'END'
import ctypes, os, threading
inside, out = b'inside', os.environ['OUT'].encode() + b'/victim'
path = ctypes.create_string_buffer(200); chmod = ctypes.CDLL(None).chmod
go = True
def flip():
    while go:
        path.value = inside; path.value = out
worker = threading.Thread(target=flip); worker.start()
for n in range(1500): chmod(path, 0o600 + n % 8)
go = False
END",
    )
    .racy(),
    attempt("change a time to now", "touch $OUT/victim"),
    attempt("change an owner", "chown 1:1 $OUT/victim").needs(Needs::Root),
    attempt("change a time", "touch -d 2001-01-01 $OUT/victim"),
    attempt(
        "set an attribute",
        "python3 -c 'import os; os.setxattr(os.environ[\"OUT\"]+\"/victim\", \"user.x\", b\"y\")'",
    ),
    attempt("change the flags of a readable file", "chattr +A ~/.gitconfig")
        .after("lsattr $(dirname $DOORS)/home/.gitconfig | cut -d' ' -f1 | grep -q A && { chattr -A $(dirname $DOORS)/home/.gitconfig; touch $OUT/flagged; }"),
    attempt(
        "change the flags of a file by path",
        "python3 - <<'END'
import ctypes, os, struct
flags = ctypes.create_string_buffer(struct.pack('QIIIII', 0x40, 0, 0, 0, 0, 0))
path = os.environ['OUT'].encode() + b'/victim'
ctypes.CDLL(None).syscall(469, -100, path, flags, 24, 0)
END",
    )
    .unconfined(Unconfined::Either)
    .after("lsattr $OUT/victim | cut -d' ' -f1 | grep -q A && { chattr -A $OUT/victim; touch $OUT/flagged; }"),
    attempt("a device node", "mknod disk b 7 0; mknod memory c 1 1; test -b disk -o -c memory && echo made-a-device")
        .says("made-a-device\n")
        .needs(Needs::Root),
    attempt(
        "open a directory, then a name in it",
        "python3 -c 'import os; d=os.open(os.environ[\"OUT\"], os.O_PATH); print(os.read(os.open(\"secret\", os.O_RDONLY, dir_fd=d), 99))'",
    ),
    attempt(
        "hold without opening, then open anew",
        "python3 -c 'import os; d=os.open(os.environ[\"OUT\"]+\"/secret\", os.O_PATH); print(open(f\"/proc/self/fd/{d}\").read())'",
    ),
    attempt(
        "a link that flips between inside and outside",
        "echo in > inside; python3 - <<'END'
import os, threading
out = os.environ['OUT'] + '/victim'
def flip():
    for n in range(600):
        for target in ('inside', out):
            os.symlink(target, 'next'); os.rename('next', 'flip')
worker = threading.Thread(target=flip); worker.start()
while worker.is_alive():
    try: open('flip', 'a').write('x')
    except OSError: pass
END",
    )
    .racy(),
    attempt(
        "open by handle",
        "python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [('size', ctypes.c_uint), ('kind', ctypes.c_int), ('bytes', ctypes.c_ubyte * 128)]
handle, mount = Handle(128), ctypes.c_int()
libc.name_to_handle_at(-100, os.environ['OUT'].encode() + b'/secret', ctypes.byref(handle), ctypes.byref(mount), 0)
fd = libc.open_by_handle_at(os.open('.', os.O_RDONLY), ctypes.byref(handle), os.O_RDONLY)
print(os.read(fd, 99))
END",
    )
    .needs(Needs::Root),
    attempt("plant in /etc", "echo x > /etc/$NAME").needs(Needs::Root).makes("/etc/NAME"),
    attempt("plant in /usr/local/bin", "echo x > /usr/local/bin/$NAME")
        .needs(Needs::Root)
        .makes("/usr/local/bin/NAME"),
    attempt("plant in /var/tmp", "echo x > /var/tmp/$NAME").makes("/var/tmp/NAME"),
    attempt("plant in /tmp", "echo x > /tmp/$NAME").makes("/tmp/NAME"),
    attempt("plant in shared memory", "echo x > /dev/shm/$NAME").makes("/dev/shm/NAME"),
    attempt("plant in /run", "echo x > /run/$NAME").needs(Needs::Root).makes("/run/NAME"),
    attempt("change a start-up file", "echo evil >> ~/.bashrc"),
    attempt("change the git configuration", "git config --global core.fsmonitor evil || echo evil >> ~/.gitconfig"),
    attempt("plant a program on PATH", "echo evil > ~/bin/git"),
    attempt("spoil a shared cache", "echo evil > ~/.cargo/registry/planted; rm -f ~/.cargo/registry/cached"),
    attempt("read an ssh key", "cat ~/.ssh/id_ed25519"),
    attempt("read cargo's token", "cat ~/.cargo/credentials.toml"),
    attempt("read npm's token", "cat ~/.npmrc"),
    attempt("read pypi's token", "cat ~/.pypirc"),
    attempt("read git's passwords", "cat ~/.git-credentials"),
    attempt("read cloud credentials", "cat ~/.aws/credentials"),
    attempt("read machine passwords", "cat ~/.netrc"),
    attempt("search the home", "grep -rs . ~"),
    attempt("a file that only root reads, through a set-user-id program", "$SUID $ROOT_SECRET")
        .needs(Needs::OrdinaryUser)
    .unconfined(Unconfined::Contained),
    attempt("make a program with root's group", "cp /bin/true t; chmod g+s t; test -g t && echo made-set-group-id")
        .says("made-set-group-id\n")
        .needs(Needs::Root),
    attempt("make a set-user-id program", "cp /bin/true t; chmod u+s t; test -u t && echo made-set-user-id")
        .says("made-set-user-id\n"),
    attempt("fill the disk", "truncate -s 20G big && echo made-it-large")
        .says("made-it-large\n")
        .unconfined(Unconfined::Contained),
];
