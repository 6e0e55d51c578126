"""Scripts that write, change and remove files in every way that a training does, and that people do by mistake.

`SCRIPTS` are written by hand; `drawn` makes others by seed: calls that change files times ways to make them. Each runs
in ``$HERE`` and ends with status 0 where nothing stops it; the others are folders with files of the user's, too.
"""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

FOLDERS = ("HERE", "HOME", "ELSEWHERE", "MEMORY")
"""Variables of the environment: the working folder, two other ones, and one in shared memory."""
_BEFORE = """
import ctypes, glob, json, mmap, multiprocessing, os, pathlib, shutil, socket, sqlite3, subprocess, sys, tempfile
from multiprocessing.shared_memory import SharedMemory
HERE, HOME, ELSEWHERE, MEMORY = (os.environ[name] for name in ("HERE", "HOME", "ELSEWHERE", "MEMORY"))
libc = ctypes.CDLL(None, use_errno=True)
def checked(status):
    if status < 0:
        raise OSError(ctypes.get_errno(), "libc")
    return status
def shell(text):
    subprocess.run(["sh", "-ec", text], check=True)
def in_child(function, *arguments):
    child = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode
"""

SCRIPTS = {
    "hydra": "os.makedirs('out/1'); os.chdir('out/1'); open('a.txt', 'w').write('a'); assert os.listdir()",
    "renamed folder": "os.rename('checkpoints', 'old'); os.makedirs('checkpoints'); assert os.listdir('old')",
    "replaced folder": "shutil.rmtree('checkpoints'); os.makedirs('checkpoints/new'); assert os.listdir('checkpoints')",
    "overwritten": "open('notes.txt', 'w').write('x'); assert open('notes.txt').read() == 'x'",
    "appended": "open('notes.txt', 'a').write('x'); assert open('notes.txt').read() == 'minex'",
    "removed": "os.remove('notes.txt'); assert not os.path.exists('notes.txt') and 'notes.txt' not in os.listdir()",
    "modes": "os.chmod('notes.txt', 0o600); os.chmod('checkpoints', 0o700)",
    "descriptor's mode": "os.fchmod(os.open('notes.txt', os.O_RDONLY), 0o600)",
    "times": "os.utime('notes.txt', (1, 1)); os.utime(os.open('kept.bin', os.O_RDONLY), (1, 1))",
    "owners": "os.chown('notes.txt', os.getuid(), os.getgid()); os.lchown('link', os.getuid(), os.getgid())",
    "attributes": "os.setxattr('notes.txt', 'user.seen', b'1'); os.setxattr(HERE, 'user.seen', b'1')",
    "sqlite": "db = sqlite3.connect('runs.db'); db.execute('create table t (a)'); db.commit(); db.close()",
    "sqlite's log": "db = sqlite3.connect('r.db'); "
    "db.execute('pragma journal_mode=wal'); db.execute('create table t (a)')",
    "memory map": "f = open('kept.bin', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:2] = b'xx'; m.flush()",
    "truncated": "os.truncate('notes.txt', 0); libc.truncate(b'kept.bin', 1)",
    "hard link": "os.link('notes.txt', 'two.txt'); open('two.txt', 'w').write('x')",
    "through a link": "open('link', 'w').write('x'); assert open('notes.txt').read() == 'x'",
    "link replaced": "os.remove('link'); os.symlink('kept.bin', 'link'); open('link', 'ab').write(b'x')",
    "pathlib": "pathlib.Path('notes.txt').write_text('x'); "
    "pathlib.Path('n.txt').touch(); pathlib.Path('n.txt').unlink()",
    "fifo": "os.mkfifo('pipe'); assert os.path.exists('pipe')",
    "socket": "s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(); socket.socket(socket.AF_UNIX).connect('s')",
    "shared memory": "s = SharedMemory(os.path.basename(MEMORY) + 's', True, 9); os._exit(0)",
    "named segment": "fd = os.open(MEMORY + '/kept.bin', os.O_RDWR); "
    "os.write(fd, b'xx'); os.remove(MEMORY + '/notes.txt')",
    "system V": "checked(libc.shmget(0, 4096, 0o1600))",
    "home": "open(HOME + '/.rc', 'w').write('x'); shutil.rmtree(HOME + '/checkpoints')",
    "elsewhere": "open(ELSEWHERE + '/notes.txt', 'w').write('x'); os.rename(ELSEWHERE + '/kept.bin', ELSEWHERE + '/b')",
    "above": "open('../made.txt', 'w').write('x'); os.listdir('..')",
    "temporary": "f, p = tempfile.mkstemp(); os.write(f, b'x'); d = tempfile.mkdtemp(); open(d + '/a', 'w').write('x')",
    "tmp": "open('/tmp/made_by_a_script', 'w').write('x')",
    "shell": "shell('echo x >> notes.txt; rm kept.bin; mkdir -p a/b; "
    "mv checkpoints c; ln -sf kept.bin link; touch -d @1 c')",
    "shell's move": "shell('mv notes.txt ../elsewhere/moved.txt; cp -a checkpoints ../elsewhere/c; chmod -R 700 .')",
    "daemon": "subprocess.Popen(['sh', '-c', 'sleep 0.1; echo x > late.txt'], start_new_session=True)",
    "child": "in_child(lambda: open('notes.txt', 'w').write('x')); assert open('notes.txt').read() == 'x'",
    "spare descriptor": "fd = os.open('.', os.O_RDONLY); os.rename('notes.txt', 'b', src_dir_fd=fd, dst_dir_fd=fd)",
    "copied tree": "shutil.copytree('checkpoints', 'copy'); "
    "shutil.copy2('notes.txt', 'copy/n'); shutil.move('copy', 'c2')",
    "archive": "shutil.make_archive('all', 'gztar', 'checkpoints'); shutil.unpack_archive('all.tar.gz', 'un')",
    "lock": "import fcntl; f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); os.remove('lock')",
    "many": "[open(f'f{n}', 'w').close() for n in range(300)]; [os.remove(p) for p in glob.glob('f*')]",
    "odd names": "open('a\\n\\x1b[31m', 'w').close(); os.mkdir(b'\\xff'); open(b'\\xff/\\xfe', 'w').close()",
    "deep": "os.makedirs('/'.join(['d'] * 60)); shutil.rmtree('d')",
    "C": "f = checked(libc.open(b'notes.txt', 1)); checked(libc.write(f, b'x', 1)); checked(libc.unlink(b'kept.bin'))",
    "C's directory": "checked(libc.rename(b'checkpoints', b'c')); checked(libc.mkdir(b'checkpoints', 0o700))",
    "exchange": "checked(libc.renameat2(-100, b'notes.txt', -100, b'kept.bin', 2))",
    "sparse": "f = open('big.bin', 'wb'); f.seek(1 << 30); f.write(b'x'); f.close()",
    "unnamed": "fd = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(fd, b'x')",
}
"""By what they do."""

_CALLS = {
    "write": {
        "open": "open({path!r}, 'w').write('changed')",
        "pathlib": "pathlib.Path({path!r}).write_bytes(b'changed')",
        "os": "os.write(os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), b'changed')",
        "C": "checked(libc.write(checked(libc.open(os.fsencode({path!r}), 0o1101, 0o600)), b'changed', 7))",
        "shell": "shell(f'echo changed > {path}')",
        "child": "in_child(lambda: open({path!r}, 'w').write('changed'))",
        "map": "f = open({path!r}, 'w+b'); f.truncate(9); m = mmap.mmap(f.fileno(), 9); m[0:2] = b'xx'; m.flush()",
        "replace": "open({path!r} + '.new', 'w').write('changed'); os.replace({path!r} + '.new', {path!r})",
        "json": "json.dump([1], open({path!r}, 'w'))",
        "sqlite": "d = sqlite3.connect({path!r} + '.db'); d.execute('create table t{n} (a)'); d.commit()",
    },
    "append": {
        "open": "open({path!r}, 'a').write('more')",
        "C": "checked(libc.write(checked(libc.open(os.fsencode({path!r}), 0o2001)), b'x', 1))",
        "shell": "shell(f'echo more >> {path}')",
    },
    "remove": {
        "os": "os.remove({path!r})",
        "pathlib": "pathlib.Path({path!r}).unlink()",
        "C": "checked(libc.unlink(os.fsencode({path!r})))",
        "shell": "shell(f'rm {path}')",
        "child": "in_child(os.remove, {path!r})",
    },
    "rename": {
        "os": "os.rename({path!r}, {path!r} + '.old{n}')",
        "shutil": "shutil.move({path!r}, {path!r} + '.old{n}')",
        "C": "checked(libc.rename(os.fsencode({path!r}), os.fsencode({path!r} + '.old{n}')))",
        "shell": "shell(f'mv {path} {path}.old{n}')",
    },
    "mode": {"os": "os.chmod({path!r}, 0o640)", "C": "checked(libc.chmod(os.fsencode({path!r}), 0o640))",
             "shell": "shell(f'chmod 640 {path}')"},
    "times": {"os": "os.utime({path!r}, (7, 7))", "shell": "shell(f'touch -d @7 {path}')",
              "shutil": "shutil.copystat('/etc/passwd', {path!r})"},
    "attribute": {"os": "os.setxattr({path!r}, 'user.a', b'1')"},
    "folder": {
        "makedirs": "os.makedirs({folder!r} + '/made{n}/b'); open({folder!r} + '/made{n}/b/c', 'w').write('x')",
        "rmtree": "shutil.rmtree({folder!r} + '/checkpoints', ignore_errors=False); "
            "os.mkdir({folder!r} + '/checkpoints')",
        "copytree": "shutil.copytree({folder!r} + '/checkpoints', {folder!r} + '/copy{n}')",
        "rename": "os.rename({folder!r} + '/checkpoints', {folder!r} + '/c{n}'); os.mkdir({folder!r} + '/checkpoints')",
        "shell": "shell(f'mv {folder}/checkpoints {folder}/c{n}; "
            "mkdir {folder}/checkpoints; touch {folder}/checkpoints/t')",
    },
}  # fmt: skip
_NEED_A_FILE = ("append", "remove", "rename", "mode", "times", "attribute")


def script(body: str) -> str:
    """A whole script."""
    return _BEFORE + textwrap.dedent(body)


def drawn(seed: int, folders: dict[str, Path]) -> str:
    """The body of a script with two to six calls, chosen by the seed, on files in the given folders."""
    pick = random.Random(seed)
    lines, gone = [], set()
    for number in range(pick.randint(2, 6)):
        folder = str(folders[pick.choice(FOLDERS)])
        what = pick.choice(list(_CALLS))
        if what == "attribute" and folder == str(folders["MEMORY"]):
            continue  # Not every kernel's tmpfs has them.
        path = f"{folder}/{pick.choice(('notes.txt', 'kept.bin', 'new.txt'))}"
        if what in _NEED_A_FILE and (path in gone or path.endswith("new.txt")):
            continue
        call = pick.choice(list(_CALLS[what].values()))
        lines.append(call.replace("{path!r}", repr(path)).replace("{path}", path).replace("{n}", str(number))
                     .replace("{folder!r}", repr(folder)).replace("{folder}", folder))  # fmt: skip
        gone |= {path} if what in ("remove", "rename") else set()
        gone -= {path} if what == "write" and path not in gone else set()
    return "\n".join(lines)


def fill(folder: Path) -> None:
    """Files of the user's, which no script may change."""
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "kept.bin").write_bytes(b"weights" * 100)
    (folder / "checkpoints" / "1.pt").write_bytes(b"1")
    if not (folder / "link").is_symlink():
        (folder / "link").symlink_to("notes.txt")
