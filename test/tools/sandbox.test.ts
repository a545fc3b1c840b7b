// What a confined command cannot do, judged by the world: files outside, sockets of the host, processes that are left.
import { createSocket } from 'node:dgram'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { allowedEnvironment, findSandbox, supervisedCommand, buildSandbox } from '../../src/tools/shell/sandbox.ts'
import { testSandbox, testSandboxAnew } from '../../src/tools/shell/sandbox-check.ts'
import { systemCallFilter } from '../../src/tools/shell/seccomp.ts'
import { runChild } from '../../src/tools/shell/child-process.ts'
import { Box, noBubblewrap, processesWith } from './box.ts'

let box: Box
beforeEach(() => {
  box = new Box()
})
afterEach(() => {
  vi.unstubAllEnvs()
  return box.close()
})

describe('a confined command (needs bubblewrap)', () => {
  it.skipIf(noBubblewrap)('B-BASH-10: writes into the workspace and nowhere else', async () => {
    const { outside, home, workspace } = box
    const targets = [`${outside}/canary`, `${outside}/new`, `${home}/new`, '/etc/terret-new', '/var/tmp/terret-new']
    const result = await box.run(
      `${targets.map((path) => `echo x > ${path}`).join('; ')}; rm -rf ${outside}; echo in > here`,
    )
    expect(result.success).toBe(true)
    expect(readFileSync(join(outside, 'canary'), 'utf8')).toBe('alive')
    expect(targets.slice(1).filter((path) => existsSync(path))).toEqual([])
    expect(readFileSync(join(workspace, 'here'), 'utf8')).toBe('in\n')
  })

  it.skipIf(noBubblewrap)('B-BASH-10: does not leave the workspace through a link in it', async () => {
    symlinkSync(box.outside, join(box.workspace, 'link'))
    await box.run('echo x > link/canary; ln -s / root; echo x > root/etc/terret-new')
    expect(readFileSync(join(box.outside, 'canary'), 'utf8')).toBe('alive')
    expect(existsSync('/etc/terret-new')).toBe(false)
  })

  it.skipIf(noBubblewrap)('B-BASH-10: has a /tmp of its own that is gone after the call', async () => {
    const mine = mkdtempSync('/tmp/terret-mine-')
    try {
      const first = await box.run(`ls -A /tmp; echo x > /tmp/terret-left && cat /tmp/terret-left; rm -rf ${mine}`)
      expect(first.stdout).toBe('x\n')
      expect([existsSync('/tmp/terret-left'), existsSync(mine)]).toEqual([false, true])
      expect((await box.run('cat /tmp/terret-left')).success).toBe(false)
    } finally {
      rmSync(mine, { recursive: true })
    }
  })

  it.skipIf(noBubblewrap)('B-BASH-11: reaches neither TCP nor UDP nor an abstract socket of the host', async () => {
    const met: string[] = []
    const tcp = await listening(
      createServer((socket) => socket.destroy(void met.push('tcp'))),
      { port: 0 },
    )
    const udp = createSocket('udp4', () => met.push('udp'))
    await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve))
    const abstract = `\0terret-${process.pid}`
    const unix = await listening(
      createServer((socket) => socket.destroy(void met.push('abstract'))),
      { path: abstract },
    )
    try {
      const { port } = tcp.address() as { port: number }
      const probe = box.write('ws/probe.cjs', probeSource)
      const command = `${process.execPath} ${probe} ${port} ${udp.address().port} terret-${process.pid}`
      await box.run(command)
      expect(met).toEqual([])
      // The same probe meets all three with the network and local sockets, so it can succeed; the network alone opens no unix socket.
      await box.run(command, { network: true })
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect([...new Set(met)].toSorted()).toEqual(['tcp', 'udp'])
      await box.run(command, { network: true }, { localSockets: true })
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect([...new Set(met)].toSorted()).toEqual(['abstract', 'tcp', 'udp'])
    } finally {
      for (const server of [tcp, unix]) server.close()
      udp.close()
    }
  })

  it.skipIf(noBubblewrap)('B-BASH-11: cannot connect to the sockets of daemons in /run', async () => {
    // Only root may put a socket into /run; for others a hidden folder of their own stands for it.
    const folder = process.getuid?.() === 0 ? '/run' : box.outside
    const path = join(folder, `terret-${process.pid}.sock`)
    let met = 0
    const daemon = await listening(
      createServer((socket) => socket.destroy(void met++)),
      { path },
    )
    try {
      const probe = `require('net').connect('${path}').on('error', (e) => console.log(e.code))`
      const result = await box.run(`${process.execPath} -e "${probe}"`, {}, { masked: [folder] })
      expect([result.stdout, met]).toEqual(['EAFNOSUPPORT\n', 0])
      const local = await box.run(`${process.execPath} -e "${probe}"`, {}, { masked: [folder], localSockets: true })
      expect([local.stdout, met]).toEqual(['ENOENT\n', 0])
    } finally {
      daemon.close()
    }
  })

  it.skipIf(noBubblewrap)('B-BASH-12: sees no variable but the allowed ones, in no process of its world', async () => {
    const canary = `canary-${process.pid}-secret`
    process.env['TERRET_CANARY'] = canary
    try {
      const env = { ...process.env, HOME: box.home, API_KEY: canary, LD_PRELOAD: canary, BASH_ENV: canary }
      const command = `env; cat /proc/*/environ /proc/*/task/*/environ; ps eax; cat /proc/${process.pid}/environ; set`
      const result = await box.run(command, {}, { env })
      expect(result.stdout).toContain('PATH=')
      expect(result.stdout + result.stderr).not.toContain(canary)
    } finally {
      delete process.env['TERRET_CANARY']
    }
  })

  const PROFILES = ['.bash_profile', '.bash_login', '.profile', '.bashrc', '.bash_logout']

  it.each([
    ['confined', {}],
    ['not confined', { sandbox: { type: 'none', reason: 'to compare' } }],
  ] as const)('B-SANDBOX-5: reads no start-up file of the user when it is %s', async (how, options) => {
    if (how === 'confined' && noBubblewrap) return
    for (const file of PROFILES) box.write(`home/${file}`, 'export FROM_PROFILE=secret; echo read\n')
    const env = {
      PATH: process.env['PATH'],
      HOME: box.home,
      BASH_ENV: join(box.home, '.profile'),
      JAVA_HOME: '/java',
      A: 'a',
    }
    const result = await box.run('echo "$FROM_PROFILE:$JAVA_HOME:$A:$PATH"', {}, { env, ...options })
    expect([result.stdout, result.stderr]).toEqual([`:::${env.PATH}\n`, ''])
    const more = await box.run('echo "$JAVA_HOME:$A"', {}, { env, variables: ['JAVA_HOME', 'MISSING'], ...options })
    expect(more.stdout).toBe('/java:\n')
    const misspelled = { variables: 'JAVA_HOME' as unknown as readonly string[] }
    await expect(box.run('true', {}, misspelled)).rejects.toMatchObject({ code: 'invalid_config' })
  })

  it.skipIf(noBubblewrap)('B-BASH-12: finds the usual secrets and the data of the harness empty', async () => {
    for (const path of [
      '.ssh/id_rsa',
      '.aws/credentials',
      '.gnupg/key',
      '.config/gcloud/token',
      '.docker/config.json',
    ]) {
      box.write(`home/${path}`, 'canary-secret')
    }
    for (const path of ['.npmrc', '.netrc', '.git-credentials', '.terret/sessions.db']) {
      box.write(`home/${path}`, 'canary-secret')
    }
    const data = box.write('ws/data/log.db', 'canary-secret')
    box.write('home/.gitconfig', 'readable')
    const result = await box.run(`grep -r . ~ data`, {}, { masked: [join(data, '..')] })
    expect(result.stdout).toBe(`${box.home}/.gitconfig:readable\n`)
    const other = await box.run('cat ~/.npmrc && ls -A ~/.ssh; grep -r canary-secret ~')
    expect(other.stdout).toBe('')
    expect(readFileSync(join(box.home, '.npmrc'), 'utf8')).toBe('canary-secret')
  })

  it.skipIf(noBubblewrap)('B-BASH-12: finds the keys and records of the harness empty, wherever they are', async () => {
    const places = {
      '.config/terret/.env': {},
      '.local/share/terret/terret.db': {},
      '.terret/pins.json': {},
      'other/terret/config.json': { XDG_CONFIG_HOME: join(box.home, 'other') },
      'shared/terret/terret.db': { XDG_DATA_HOME: join(box.home, 'shared') },
      'chosen/terret.db': { TERRET_HOME: join(box.home, 'chosen') },
    }
    for (const [path, variables] of Object.entries(places)) {
      box.write(`home/${path}`, 'canary-secret')
      const env = { PATH: process.env['PATH'], HOME: box.home, ...variables }
      expect([path, (await box.run(`cat ~/${path}`, {}, { env })).stdout]).toEqual([path, ''])
    }
  })

  it.skipIf(noBubblewrap)('B-BASH-12: is not blinded by variables that are empty', async () => {
    box.write('ws/sub/a.txt', 'a')
    const env = { PATH: process.env['PATH'], HOME: box.home, TERRET_HOME: '', XDG_DATA_HOME: '', XDG_CONFIG_HOME: '' }
    const here = process.cwd()
    process.chdir(join(box.workspace, 'sub'))
    try {
      expect((await box.run('cat sub/a.txt', {}, { env })).stdout).toBe('a')
    } finally {
      process.chdir(here)
    }
  })

  it.skipIf(noBubblewrap)('B-BASH-12: sees its workspace also when that lies in a hidden folder', async () => {
    box.write('data/log.db', 'canary-secret')
    mkdirSync(join(box.root, 'data/ws'))
    const place = { workspace: join(box.root, 'data/ws'), masked: [join(box.root, 'data')] }
    const result = await box.run('echo x > mine; ls ..', {}, place)
    expect(result.stdout).toBe('ws\n')
    expect(existsSync(join(box.root, 'data/ws/mine'))).toBe(true)
  })

  it.skipIf(noBubblewrap)(
    'B-BASH-14: has no capability, no nested namespace and no way to set the kernel',
    async () => {
      const result = await box.run(
        `grep CapEff /proc/self/status; unshare -U true && echo nested; mount -t tmpfs none /mnt && echo mounted
       ( : >> /proc/sys/kernel/core_pattern ) && echo sysctl; ls /proc/${process.pid}/cwd && echo seen; ls /proc/self/fd`,
      )
      expect(result.stdout).toBe('CapEff:\t0000000000000000\n0\n1\n2\n3\n')
    },
  )

  it.skipIf(noBubblewrap)('B-BASH-15: leaves no process, whether it ends, is stopped or runs out of time', async () => {
    const mark = `7${process.pid}`
    const daemons = `setsid sleep ${mark}1 & nohup sleep ${mark}2 & (sh -c 'sleep ${mark}3 & exit' &) ; disown -a; (trap '' TERM; sleep ${mark}4) >/dev/null 2>&1 &`
    expect((await box.run(`${daemons} echo started`)).stdout).toBe('started\n')
    expect(processesWith(`sleep ${mark}`)).toEqual([])
    const late = await box.run(`${daemons} sleep ${mark}5`, { timeout_ms: 300 })
    expect(late).toMatchObject({ timed_out: true, timeout_kind: 'hard', exit_code: null })
    expect(processesWith(`sleep ${mark}`)).toEqual([])
    const stop = new AbortController()
    const stopped = box.output({ command: `${daemons} echo up > up; sleep ${mark}6` }, {}, stop.signal)
    while (!existsSync(join(box.workspace, 'up'))) await new Promise((resolve) => setTimeout(resolve, 10))
    const begun = performance.now()
    stop.abort()
    await expect(stopped).rejects.toMatchObject({ kind: 'Interrupted' })
    expect(performance.now() - begun).toBeLessThan(1_000)
    expect(processesWith(mark)).toEqual([])
  })
})

describe('a confined command that takes all it can get (needs bubblewrap)', () => {
  const few = { processesMax: 64, memoryBytesMax: 2 ** 30, fileBytesMax: 2 ** 20 }
  // Linux does not limit the processes of root, so root runs it as another user.
  const isRoot = process.getuid?.() === 0
  const noOther = noBubblewrap || (isRoot && !existsSync('/usr/bin/setpriv'))

  async function run(argv: readonly string[], hardMs = 30_000) {
    const verdict = await testSandbox('/usr/bin/bwrap', runtimeClock)
    if (verdict.type !== 'sound') throw new Error(verdict.reason)
    chmodSync(box.root, 0o755)
    chmodSync(box.workspace, 0o777)
    const { PATH = '' } = process.env
    const room = { workspace: box.workspace, network: false, env: { PATH }, masked: [], protectedPaths: [] }
    const { args, filter } = buildSandbox(room, verdict.features)
    const nobody = isRoot ? ['/usr/bin/setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
    const [file = '', ...rest] = [...nobody, '/usr/bin/bwrap', ...args, ...supervisedCommand(argv, few)]
    const { signal } = new AbortController()
    const limits = { previewBytesMax: 10_000, wholeBytesMax: 0 }
    const frame = { cwd: '/', env: {}, signal, limits, filter, namespaced: true, softMs: hardMs, hardMs }
    return runChild({ ...frame, file, args: rest }, runtimeClock)
  }

  it.skipIf(noOther)('B-BASH-21: gets no more processes than its limit', async () => {
    const forks = 'for (1..200) { $p = fork; defined $p or last; $p or sleep(60), exit; $n++ } print $n'
    const { stdout, how } = await run(['perl', '-e', forks])
    expect(how).toEqual({ type: 'exited', code: 0 })
    expect(Number(stdout.head)).toBeGreaterThan(20)
    expect(Number(stdout.head)).toBeLessThan(64)
  })

  it.skipIf(noOther)('B-BASH-21: leaves nothing of a fork bomb when its time is up', async () => {
    const mark = `bomb-${process.pid}`
    const { how } = await run(['bash', '-c', 'b() { b | b & }; b; sleep 60', mark], 400)
    expect(how).toEqual({ type: 'timeout', kind: 'hard' })
    expect(processesWith(mark)).toEqual([])
  })

  it.skipIf(noOther)('B-BASH-21: gets no more memory and no larger file than its limits', async () => {
    const eat = 'const all = []; for (;;) all.push(Buffer.alloc(1e8, 1)), console.log(all.length)'
    const { stdout, how } = await run([process.execPath, '-e', eat])
    expect(how).not.toEqual({ type: 'exited', code: 0 })
    expect(Number(stdout.head.trim().split('\n').at(-1))).toBeLessThan(11)
    await run(['bash', '-c', `head -c 5000000 /dev/zero > ${box.workspace}/large`])
    expect(statSync(join(box.workspace, 'large')).size).toBe(2 ** 20)
  })

  it.skipIf(noBubblewrap)(
    'B-BASH-21: is limited by default, cannot raise it, and dies first when memory ends',
    async () => {
      const { stdout } = await box.run(
        `ulimit -u; ulimit -f; ulimit -d; ulimit -u 9999 || ulimit -d unlimited || ulimit -f unlimited || cat /proc/self/oom_score_adj`,
      )
      const [processes, file, memory, score] = stdout.trim().split('\n').map(Number)
      expect([processes, file, score]).toEqual([4096, 8 * 2 ** 20, 1000])
      expect(memory).toBeLessThanOrEqual(totalmem() / 2 / 1024)
    },
  )

  it.skipIf(noBubblewrap)('B-BASH-21: finds no place in memory to fill but a bounded /tmp and /dev/shm', async () => {
    box.write('home/.ssh/id_rsa', 'canary-secret')
    const { stdout } = await box.run(
      `for place in /dev /run ~/.ssh; do touch $place/new && echo "made $place/new"; done
       touch /dev/shm/x /tmp/x && df -B1 --output=size /dev/shm /tmp`,
    )
    expect(stdout.trim().split(/\s+/).slice(1)).toEqual([String(2 ** 30), String(2 ** 30)])
  })
})

describe('a command under the first process of its namespace (needs bubblewrap)', () => {
  it.skipIf(noBubblewrap)('B-BASH-15: cannot kill that process, and takes signals as anywhere else', async () => {
    const result = await box.run(
      `kill -9 1; kill -STOP 1; echo "alive $$"; (trap 'echo caught; exit' INT; kill -INT $BASHPID); grep SigIgn /proc/self/status`,
    )
    expect(result).toMatchObject({ success: true, stderr: '' })
    expect(result.stdout).toMatch(/^alive \d+\ncaught\nSigIgn:\t0{16}\n$/)
  })

  it.skipIf(noBubblewrap)('B-BASH-15: gains nothing from killing the process that reports its end', async () => {
    const mark = `6${process.pid}`
    const result = await box.run(`setsid sleep ${mark} & kill -9 $PPID; sleep ${mark}`, { timeout_ms: 400 })
    expect(result).toMatchObject({ success: false, timed_out: true })
    expect(processesWith(`sleep ${mark}`)).toEqual([])
  })
})

describe('the sandbox', () => {
  it.skipIf(noBubblewrap)('B-BASH-16: is tried once per process before it is trusted', async () => {
    const first = testSandbox('/usr/bin/bwrap', runtimeClock)
    expect(await first).toMatchObject({ type: 'sound' })
    expect(testSandbox('/usr/bin/bwrap', runtimeClock)).toBe(first)
  })

  it('B-BASH-16: that lets a command out is unsound, and then nothing is run at all', async () => {
    // It takes bubblewrap's place, reports as it does, and confines nothing.
    const script = `#!/bin/bash
      case "$1" in --help) exit 0;; esac
      while [ "$1" != -- ]; do shift; done; shift
      "$@"`
    const path = box.write('open/bwrap', script)
    chmodSync(path, 0o755)
    expect(await testSandboxAnew(path, runtimeClock)).toEqual({
      type: 'unsound',
      reason: 'a command could write outside',
    })
    const run = box.output({ command: 'echo x > ran' }, { sandbox: { type: 'bwrap', path } })
    await expect(run).rejects.toMatchObject({ kind: 'Unavailable' })
    expect(existsSync(join(box.workspace, 'ran'))).toBe(false)
  })

  it.skipIf(noBubblewrap)(
    'B-BASH-16: that lets a command write where it may only read is unsound, also where home is a temporary folder',
    async () => {
      const script = `#!/bin/bash
      args=()
      while [ $# -gt 0 ]; do
        if [ "$1 $2 $3" = "--ro-bind / /" ]; then args+=(--bind / /); shift 3; else args+=("$1"); shift; fi
      done
      exec /usr/bin/bwrap "\${args[@]}"`
      const path = box.write('wide/bwrap', script)
      chmodSync(path, 0o755)
      const reason = 'a command could write outside'
      for (const home of [box.home, tmpdir()]) {
        vi.stubEnv('HOME', home)
        expect(await testSandboxAnew(path, runtimeClock)).toEqual({ type: 'unsound', reason })
      }
    },
  )

  it.skipIf(noBubblewrap || systemCallFilter() === null)(
    'B-BASH-16: that drops the filter of system calls is unsound',
    async () => {
      const script = `#!/bin/bash
      args=()
      while [ $# -gt 0 ]; do if [ "$1" = --seccomp ]; then shift 2; else args+=("$1"); shift; fi; done
      exec /usr/bin/bwrap "\${args[@]}"`
      const path = box.write('weak/bwrap', script)
      chmodSync(path, 0o755)
      const reason = 'a command could make every system call'
      expect(await testSandboxAnew(path, runtimeClock)).toEqual({ type: 'unsound', reason })
    },
  )

  it('B-BASH-16: that does not start is unsound, and then nothing is run at all', async () => {
    const path = box.write('broken/bwrap', '#!/bin/sh\necho "bwrap: no namespaces" >&2; exit 1')
    chmodSync(path, 0o755)
    const verdict = await testSandboxAnew(path, runtimeClock)
    expect(verdict).toEqual({ type: 'unsound', reason: 'it does not start: bwrap: no namespaces\n' })
    const run = box.output({ command: 'echo x > ran' }, { sandbox: { type: 'bwrap', path } })
    await expect(run).rejects.toMatchObject({ kind: 'Unavailable' })
    expect(existsSync(join(box.workspace, 'ran'))).toBe(false)
  })

  it('B-BASH-16: is never taken from the workspace', () => {
    writeFileSync(join(box.workspace, 'bwrap'), '#!/bin/sh\n', { mode: 0o755 })
    const found = findSandbox(box.workspace, { PATH: `.:${box.workspace}` })
    expect(found).toEqual(
      noBubblewrap ? expect.objectContaining({ type: 'none' }) : { type: 'bwrap', path: '/usr/bin/bwrap' },
    )
    expect(findSandbox(box.workspace, { PATH: '/usr/bin' }, 'darwin').type).toBe('none')
  })

  it('B-BASH-12: builds the environment from a list of what is let through', () => {
    const env = {
      PATH: '/bin',
      HOME: '/h',
      LANG: 'C',
      TERM: 'x',
      TZ: 'UTC',
      AWS_SECRET: 's',
      LD_PRELOAD: 'l',
      PATHX: 'p',
    }
    expect(allowedEnvironment(env)).toEqual({ PATH: '/bin', HOME: '/h', LANG: 'C', TERM: 'x', TZ: 'UTC' })
  })

  it('B-BASH-10: refuses the root folder as a workspace', () => {
    const confinement = { workspace: '/', network: false, env: {}, masked: [], protectedPaths: [] }
    expect(() => buildSandbox(confinement, { disableUserns: true, tmpfsSize: true })).toThrow(/root folder/)
  })
})

const probeSource = `
  const [port, udp, name] = process.argv.slice(2)
  require('net').connect(Number(port), '127.0.0.1').on('error', () => {})
  require('net').connect('\\0' + name).on('error', () => {})
  const socket = require('dgram').createSocket('udp4')
  socket.send('x', Number(udp), '127.0.0.1', () => socket.close())
  socket.on('error', () => {})`

function listening(server: Server, where: { readonly port: number } | { readonly path: string }): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen('port' in where ? { ...where, host: '127.0.0.1' } : where, () => resolve(server))
  })
}
