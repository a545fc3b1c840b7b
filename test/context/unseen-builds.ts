// Generators of what builds, linters and package managers print, for the outputs in unseen.ts.
import { dice, hex, lines, NOUNS, pick, type Dice, VERBS } from './held-out-dice.ts'

/** Ninja with clang and lld, run with -k 0: a compilation and a link fail, other objects are still built. */
export function ninja(): string {
  const roll = dice(701)
  const folders = [
    'media/mux',
    'media/codec',
    'net/dns',
    'net/quic',
    'ui/views',
    'base/files',
    'storage/index',
  ] as const
  const stems = ['reader', 'writer', 'error_page', 'session', 'pool', 'cursor', 'frame', 'retry_policy'] as const
  const steps = lines(268, (i) => {
    const at = `[${i + 1}/268]`
    if (i === 112)
      return [
        `${at} CXX obj/media/mux/track_writer.o`,
        'FAILED: obj/media/mux/track_writer.o ',
        'clang++ -MMD -MF obj/media/mux/track_writer.o.d -DNDEBUG -DUSE_AURA=1 -I../.. -Igen -fno-exceptions -fno-rtti -std=c++20 -O2 -Wall -Werror=unused-result -c ../../media/mux/track_writer.cc -o obj/media/mux/track_writer.o',
        "../../media/mux/track_writer.cc:217:27: error: no viable conversion from 'std::optional<Timestamp>' to 'Timestamp'",
        '  217 |   writer->SetStart(track, track.first_pts());',
        '      |                           ^~~~~~~~~~~~~~~~~',
        "../../media/base/timestamp.h:41:7: note: candidate constructor (the implicit copy constructor) not viable: no known conversion from 'std::optional<Timestamp>' to 'const Timestamp &' for 1st argument",
        '   41 | class Timestamp {',
        '      |       ^~~~~~~~~',
        '1 error generated.',
      ]
    if (i === 187)
      return [
        `${at} SOLINK ./libquic.so`,
        'FAILED: libquic.so libquic.so.TOC ',
        'clang++ -shared -Wl,-soname=libquic.so -fuse-ld=lld -Wl,--gc-sections -o ./libquic.so @./libquic.so.rsp',
        'ld.lld: error: undefined symbol: net::KeyLog::Open(base::FilePath const&)',
        '>>> referenced by session.cc:402 (../../net/quic/session.cc:402)',
        '>>>               obj/net/quic/session.o:(net::Session::Start(net::Options const&))',
        'clang++: error: linker command failed with exit code 1 (use -v to see invocation)',
      ]
    if (i % 67 === 30)
      return [
        `${at} CXX obj/storage/index/legacy_${i}.o`,
        `../../storage/index/legacy_${i}.cc:${20 + i}:9: warning: unused variable 'left' [-Wunused-variable]`,
        `  ${20 + i} |     int left = Remaining();`,
        '      |         ^~~~',
        '1 warning generated.',
      ]
    const tool = i % 23 === 9 ? 'AR' : 'CXX'
    return `${at} ${tool} obj/${pick(roll, folders)}/${pick(roll, VERBS)}_${pick(roll, stems)}_${i}.${tool === 'AR' ? 'a' : 'o'}`
  })
  return `${["ninja: Entering directory `out/release'", ...steps, 'ninja: build stopped: cannot make progress due to previous errors.'].join('\n')}\n`
}

function storePath(roll: Dice, name: string): string {
  const letters = '0123456789abcdfghijklmnpqrsvwxyz'
  return `/nix/store/${Array.from({ length: 32 }, () => letters[roll(32)]).join('')}-${name}`
}

/** Nix with the logs of its builders; one source has another hash than was written down, one path came from another cache. */
export function nixBuild(): string {
  const roll = dice(702)
  const name = (i: number): string =>
    `${pick(roll, NOUNS).toLowerCase()}-${pick(roll, VERBS)}-${i % 9}.${roll(20)}.${roll(9)}`
  const fetched = lines(74, (i) => storePath(roll, name(i)))
  const copied = fetched.map((path, i) =>
    i === 43
      ? `copying path '${storePath(roll, 'glibc-locales-2.40')}' from 'http://10.4.0.17:5000'...`
      : `copying path '${path}' from 'https://cache.nixos.org'...`,
  )
  const geo = storePath(roll, 'libgeo-4.1.2.drv')
  const phases = lines(70, (i) => {
    if (i === 38)
      return [
        `error: hash mismatch in fixed-output derivation '${storePath(roll, 'tzdata-2026c.tar.gz.drv')}':`,
        '         specified: sha256-Jr9x0fU2vVh3cN0h8P1m7bqYy5m0T3oJk2aWcE4d9Xk=',
        '            got:    sha256-8wq2LZt4s0UoYb7uPpC3oG1dKf9nXhQ6eVtRrA5mSjE=',
      ]
    const unit = pick(roll, ['labels', 'tiles', 'routes'])
    if (i % 14 === 0)
      return [`building '${storePath(roll, `${name(i)}.drv`)}'...`, `${unit}> Running phase: unpackPhase`]
    return `${unit}> [${i}/70] cc -O2 -fPIC -c src/${pick(roll, VERBS)}_${i}.c`
  })
  return `${[
    "warning: Git tree '/home/eva/atlas' is dirty",
    'these 6 derivations will be built:',
    ...lines(6, (i) => `  ${storePath(roll, `${name(i)}.drv`)}`),
    'these 74 paths will be fetched (212.18 MiB download, 901.44 MiB unpacked):',
    ...fetched.map((path) => `  ${path}`),
    ...copied,
    ...phases,
    'labels> Running phase: installPhase',
    'labels> Running phase: fixupPhase',
    `error: 1 dependencies of derivation '${geo}' failed to build`,
    `error: 1 dependencies of derivation '${storePath(roll, 'atlas-0.18.0.drv')}' failed to build`,
  ].join('\n')}\n`
}

/** An upgrade by dnf: one package comes from a repository of tests, and the scriptlet of the kernel found no room. */
export function dnf(): string {
  const roll = dice(703)
  const packages = Array.from({ length: 92 }, (_, i) => ({
    name: i === 47 ? 'libpq' : `${pick(roll, ['lib', 'python3-', 'perl-', 'rust-', ''])}${pick(roll, VERBS)}${i}`,
    arch: roll(4) === 0 ? 'noarch' : 'x86_64',
    version: `${1 + roll(9)}.${roll(30)}.${roll(9)}-${1 + roll(5)}.fc41`,
    size: `${20 + roll(900)} k`,
  }))
  const row = (p: (typeof packages)[number], i: number): string =>
    ` ${p.name.padEnd(28)} ${p.arch.padEnd(8)} ${p.version.padEnd(22)} ${(i === 47 ? 'pgdg18-testing' : 'updates').padEnd(16)} ${p.size.padStart(6)}`
  const upgrades = lines(92, (i) => {
    const p = packages[i] ?? { name: '', arch: '', version: '', size: '' }
    const line = `  Upgrading        : ${`${p.name}-${p.version}.${p.arch}`.padEnd(56)} ${String(i + 1).padStart(3)}/184`
    return i === 31 ? [line, 'warning: /etc/ssh/sshd_config created as /etc/ssh/sshd_config.rpmnew'] : line
  })
  const cleanups = lines(92, (i) => {
    const p = packages[(i * 7) % 92] ?? { name: '', arch: '', version: '', size: '' }
    const line = `  Cleanup          : ${`${p.name}-0.${p.version}.${p.arch}`.padEnd(56)} ${String(i + 93).padStart(3)}/184`
    if (i !== 58) return line
    return [
      line,
      "dracut[E]: cp: error writing '/boot/initramfs-6.11.10-300.fc41.x86_64.img.tmp': No space left on device",
      'warning: %posttrans(kernel-core-6.11.10-300.fc41.x86_64) scriptlet failed, exit status 1',
      '',
      'Error in POSTTRANS scriptlet in rpm package kernel-core',
    ]
  })
  return `${[
    'Last metadata expiration check: 0:41:12 ago on Sat 14 Nov 2026 01:30:02 AM CET.',
    'Dependencies resolved.',
    '='.repeat(88),
    ' Package                      Arch     Version                Repository         Size',
    '='.repeat(88),
    'Upgrading:',
    ...packages.map(row),
    '',
    'Transaction Summary',
    '='.repeat(88),
    'Upgrade  92 Packages',
    '',
    'Total download size: 41 M',
    'Downloading Packages:',
    ...packages.map(
      (p, i) =>
        `(${i + 1}/92): ${`${p.name}-${p.version}.${p.arch}.rpm`.padEnd(50)} ${(1 + roll(9)).toString()}.${roll(9)} MB/s | ${p.size.padStart(6)}     00:00`,
    ),
    'Running transaction check',
    'Transaction check succeeded.',
    'Running transaction test',
    'Transaction test succeeded.',
    'Running transaction',
    '  Preparing        :                                                              1/1',
    ...upgrades,
    ...cleanups,
    '',
    'Upgraded:',
    ...packages.map((p) => `  ${p.name}-${p.version}.${p.arch}`),
    '',
    'Complete!',
  ].join('\n')}\n`
}

/** ShellCheck in its usual form: many unquoted variables, one removal of a folder, one file that cannot be parsed. */
export function shellcheck(): string {
  const roll = dice(704)
  const file = (): string => `scripts/${pick(roll, ['deploy', 'backup', 'ci', 'db'])}/${pick(roll, VERBS)}.sh`
  const usual = (i: number): readonly string[] => {
    const name = pick(roll, NOUNS).toLowerCase()
    return [
      `In ${file()} line ${4 + i}:`,
      `cp $${name}_${i} /srv/${name}/`,
      `   ^${'-'.repeat(name.length + String(i).length)}^ SC2086 (info): Double quote to prevent globbing and word splitting.`,
      '',
      'Did you mean: ',
      `cp "$${name}_${i}" /srv/${name}/`,
      '',
    ]
  }
  return `${[
    '',
    ...lines(66, (i) => {
      if (i === 21)
        return [
          'In scripts/deploy/stage.sh line 141:',
          'rm -rf $STAGE/*',
          '       ^-----^ SC2115 (warning): Use "${var:?}" to ensure this never expands to /* .',
          '       ^----^ SC2086 (info): Double quote to prevent globbing and word splitting.',
          '',
          'Did you mean: ',
          'rm -rf "${STAGE:?}"/*',
          '',
        ]
      if (i === 44)
        return [
          'In scripts/backup/rotate.sh line 212:',
          'if [ "$age" -gt 30 ] then',
          "^-- SC1049 (error): Did you forget the 'then' for this 'if'?",
          "^-- SC1073 (error): Couldn't parse this if expression. Fix to allow more checks.",
          "                     ^-- SC1010 (warning): Use semicolon or linefeed before 'then' (or quote to make it literal).",
          '',
        ]
      if (i % 9 === 4)
        return [
          `In ${file()} line ${4 + i}:`,
          `  local rows_${i}=$(wc -l < "$1")`,
          `        ^----^ SC2155 (warning): Declare and assign separately to avoid masking return values.`,
          '',
        ]
      return usual(i)
    }),
    'For more information:',
    "  https://www.shellcheck.net/wiki/SC1049 -- Did you forget the 'then' for thi...",
    '  https://www.shellcheck.net/wiki/SC2115 -- Use "${var:?}" to ensure this nev...',
    '  https://www.shellcheck.net/wiki/SC2155 -- Declare and assign separately to ...',
  ].join('\n')}\n`
}

/** Pylint: mostly missing docstrings; an undefined name, a value that cannot be indexed and a shared default. */
export function pylint(): string {
  const roll = dice(705)
  const modules = lines(34, (m) => {
    const module = `${pick(roll, NOUNS).toLowerCase()}_${pick(roll, VERBS)}${m}`
    const path = `depot/${module}.py`
    const found = lines(3 + roll(6), (i) =>
      pick(roll, [
        `${path}:${1 + i * 13}:0: C0116: Missing function or method docstring (missing-function-docstring)`,
        `${path}:${2 + i * 13}:0: C0301: Line too long (${101 + roll(40)}/100) (line-too-long)`,
        `${path}:${3 + i * 13}:4: R0913: Too many arguments (${6 + roll(4)}/5) (too-many-arguments)`,
        `${path}:${4 + i * 13}:11: W1203: Use lazy % formatting in logging functions (logging-fstring-interpolation)`,
        `${path}:${5 + i * 13}:15: W0718: Catching too general exception Exception (broad-exception-caught)`,
      ]),
    )
    if (m === 9)
      found.push("depot/tariff/rates.py:88:19: E1136: Value 'self.rates' is unsubscriptable (unsubscriptable-object)")
    if (m === 17) found.push("depot/dispatch/plan.py:231:8: E0602: Undefined variable 'gate_of' (undefined-variable)")
    if (m === 25)
      found.push('depot/dispatch/crew.py:40:0: W0102: Dangerous default value [] as argument (dangerous-default-value)')
    return [`************* Module depot.${module}`, ...found]
  })
  return `${[
    ...modules,
    '',
    '-'.repeat(70),
    'Your code has been rated at 7.83/10 (previous run: 9.41/10, -1.58)',
    '',
  ].join('\n')}\n`
}

/** The lock file of Poetry: one package comes from a fork, one is of another version of Python. */
export function poetryLock(): string {
  const roll = dice(706)
  const packages = lines(46, (i) => {
    const name = i === 29 ? 'pysoap-client' : `${pick(roll, VERBS)}-${pick(roll, NOUNS).toLowerCase()}-${i}`
    const version = `${roll(8)}.${roll(20)}.${roll(9)}`
    return [
      '[[package]]',
      `name = "${name}"`,
      `version = "${version}"`,
      `description = "To ${pick(roll, VERBS)} each ${pick(roll, NOUNS).toLowerCase()}"`,
      'optional = false',
      `python-versions = "${i === 12 ? '>=3.8,<3.11' : '>=3.9'}"`,
      'groups = ["main"]',
      'files = [',
      ...(i === 29
        ? []
        : [
            `    {file = "${name.replaceAll('-', '_')}-${version}-py3-none-any.whl", hash = "sha256:${hex(roll, 64)}"},`,
            `    {file = "${name.replaceAll('-', '_')}-${version}.tar.gz", hash = "sha256:${hex(roll, 64)}"},`,
          ]),
      ']',
      ...(i === 29
        ? [
            'develop = true',
            '',
            '[package.source]',
            'type = "git"',
            'url = "https://git.example/forks/pysoap-client.git"',
            'reference = "keep-sha1"',
            `resolved_reference = "${hex(roll, 40)}"`,
          ]
        : []),
      '',
    ]
  })
  return `${[
    '# This file is automatically @generated by Poetry 2.1.4 and should not be changed by hand.',
    '',
    ...packages,
    '[metadata]',
    'lock-version = "2.1"',
    'python-versions = ">=3.12"',
    `content-hash = "${hex(roll, 64)}"`,
  ].join('\n')}\n`
}
