// The bash tool: its structured result, its timeouts, its bounds, and when a person must be asked. The walls are in sandbox.test.ts.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import { type BashLine, bashTool } from '../../src/tools/shell/bash.ts'
import type { CommandEnd, RunningCommand } from '../../src/tools/shell/running-command.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import type { ShellSandbox } from '../../src/tools/shell/sandbox.ts'
import type { Approval, Tool } from '../../src/tools/core/tool.ts'
import { Box, noBubblewrap, processesWith, type Result } from './box.ts'

const open: ShellSandbox = { type: 'none', reason: 'bubblewrap (bwrap) is not installed' }

const walls: ShellSandbox = { type: 'bwrap', path: '/usr/bin/bwrap' }

function asked(tool: Tool, calls: readonly { readonly [key: string]: Json }[]): Promise<readonly Approval[]> {
  return Promise.all(calls.map((args) => Promise.resolve(tool.approval({ command: 'true', ...args }))))
}

let box: Box
beforeEach(() => {
  box = new Box()
})
afterEach(() => box.close())

// The contract is the same with and without walls. Without bubblewrap the first half is a named skip.
describe.each([
  ['in the sandbox (needs bubblewrap)', noBubblewrap, {}],
  ['without a sandbox', false, { sandbox: open }],
] as const)('bash %s', (_name, skipped, options) => {
  it.skipIf(skipped)('B-BASH-1: answers with the command, the shell, both streams and the exit code', async () => {
    const command = 'echo out; echo err >&2; pwd'
    const { content, ok, metadata } = await box.output({ command }, options)
    const stdout = `out\n${box.workspace}\n`
    expect(JSON.parse(content)).toEqual({
      command,
      shell: '/bin/bash',
      stdout,
      stderr: 'err\n',
      exit_code: 0,
      success: true,
    })
    expect([ok, metadata['exit_code'], metadata['error_type']]).toEqual([true, 0, undefined])
    expect(metadata['sandboxed']).toBe(!('sandbox' in options))
  })

  it.skipIf(skipped)(
    'B-BASH-25: a call can ask to see less of each stream and never more, and the rest can be read (AC-28)',
    async () => {
      const command = 'for i in $(seq 1 20000); do echo line $i; done'
      const { content: always } = await box.output({ command }, options)
      const { content: less, metadata } = await box.output({ command, max_chars: 200 }, options)
      const { content: more } = await box.output({ command, max_chars: 10_000_000 }, options)
      const shown = (content: string): string => (JSON.parse(content) as { readonly stdout: string }).stdout
      expect(shown(less).length).toBeLessThan(500)
      expect(shown(more)).toHaveLength(shown(always).length)
      expect(metadata['stdout_blob']).toBeDefined()
    },
  )

  it.skipIf(skipped)('B-BASH-2: a command that exits with another code is a result and not a failure', async () => {
    const { content, ok, metadata } = await box.output({ command: 'exit 3' }, options)
    expect(JSON.parse(content)).toMatchObject({ exit_code: 3, success: false })
    expect([ok, metadata['error_type']]).toEqual([true, 'NonZeroExit'])
    expect(await box.run('kill -9 $$', {}, options)).toMatchObject({ exit_code: 137, success: false })
    expect(await box.run('no-such-program', {}, options)).toMatchObject({ exit_code: 127 })
    expect(await box.run('if then', {}, options)).toMatchObject({ success: false })
  })

  it.skipIf(skipped)('B-BASH-3: every call is a fresh shell with nothing to read', async () => {
    await box.run('cd /; export LEFT=1', {}, options)
    expect((await box.run('pwd; echo "[$LEFT]"; cat', {}, options)).stdout).toBe(`${box.workspace}\n[]\n`)
  })

  it.skipIf(skipped)('B-BASH-4: silence ends a command, and any output begins the count anew', async () => {
    const silent = await box.output({ command: 'echo begun; sleep 20', soft_timeout_ms: 300 }, options)
    const result = JSON.parse(silent.content) as unknown
    expect(result).toMatchObject({
      stdout: 'begun\n',
      exit_code: null,
      success: false,
      timed_out: true,
      timeout_kind: 'soft',
    })
    expect(silent.metadata).toMatchObject({ error_type: 'Timeout', timed_out: true })
    const talking = 'for i in 1 2 3 4 5 6 7 8 9; do echo $i >&2; sleep 0.4; done'
    expect(await box.run(talking, { soft_timeout_ms: 3_000 }, options)).toMatchObject({ exit_code: 0 })
  })

  it.skipIf(skipped)('B-BASH-5: the hard limit ends a command that talks on and ignores SIGTERM', async () => {
    const begun = performance.now()
    const command = `trap '' TERM; while :; do echo on; sleep 0.05; done`
    const result = await box.run(command, { timeout_ms: 500 }, options)
    expect(result).toMatchObject({ exit_code: null, timed_out: true, timeout_kind: 'hard' })
    expect(result.stdout).toContain('on\n')
    expect(performance.now() - begun).toBeLessThan(2_500)
  })

  it.skipIf(skipped)('B-BASH-6: an abort ends the command within a second, also when it ignores SIGTERM', async () => {
    const mark = `8${process.pid}${skipped ? 1 : 0}`
    const stop = new AbortController()
    const command = `trap '' TERM; touch up; while :; do sleep ${mark}; done`
    const stopped = box.output({ command }, options, stop.signal)
    while (!existsSync(join(box.workspace, 'up'))) await new Promise((resolve) => setTimeout(resolve, 10))
    const begun = performance.now()
    stop.abort()
    await expect(stopped).rejects.toMatchObject({ kind: 'Interrupted' })
    expect(performance.now() - begun).toBeLessThan(1_000)
    expect(processesWith(`sleep ${mark}`)).toEqual([])
  })

  it.skipIf(skipped)('B-BASH-6: an abort before or just after the start leaves nothing that runs', async () => {
    for (const afterMs of [null, 0, 1, 2, 4, 8]) {
      const stop = new AbortController()
      if (afterMs === null) stop.abort()
      const stopped = box.output({ command: `sleep 9${process.pid}` }, options, stop.signal)
      if (afterMs !== null) setTimeout(() => stop.abort(), afterMs)
      await expect(stopped).rejects.toMatchObject({ kind: 'Interrupted' })
    }
    expect(processesWith(`sleep 9${process.pid}`)).toEqual([])
  })

  it.skipIf(skipped)(
    'B-BASH-7: small output is whole; of large output there are head, tail, and the full text beside the log',
    async () => {
      expect((await box.run('head -c 50000 /dev/zero | tr "\\0" x', {}, options)).stdout).toBe('x'.repeat(50_000))
      const { content, metadata } = await box.output({ command: 'seq 100000; echo done' }, options)
      const { stdout } = JSON.parse(content) as { stdout: string }
      expect(stdout.startsWith('1\n2\n3\n') && stdout.endsWith('\n100000\ndone\n')).toBe(true)
      const [kept] = box.kept
      const [hash, whole] = kept ?? ['', '']
      expect(stdout).toContain(`bytes left out here; read on with read, path "blob:${hash}"`)
      expect(metadata).toMatchObject({
        stdout_truncated: true,
        stderr_truncated: false,
        stdout_blob: { hash },
      })
      expect(whole).toMatch(/^1\n2\n[^]*\n100000\ndone\n$/)
    },
  )

  it.skipIf(skipped)('B-BASH-9: large, binary and endless-line output leave the result bounded', async () => {
    for (const command of ['yes', 'tr "\\0" x < /dev/zero', 'cat /dev/urandom', 'cat /dev/zero', 'yes >&2']) {
      const { content } = await box.output(
        { command: `(${command}) 2> >(head -c 9000000 >&2) | head -c 9000000` },
        options,
      )
      expect(content.length).toBeLessThan(210_000)
    }
    for (const text of box.kept.values()) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8_000_000)
  })
})

describe('bash', () => {
  it('B-BASH-9: says how much was not even kept', async () => {
    const { stdout } = await box.run('yes | head -c 9000000', {}, { sandbox: open })
    const [hash] = [...box.kept.keys()]
    expect(stdout).toContain(
      `[8950000 of 9000000 bytes left out here; read on with read, path "blob:${hash}"; the last 1000000 bytes were not kept]`,
    )
  })

  it('B-BASH-3: runs one call at a time, at most once, with limits of its own before those of the harness', () => {
    const tool = bashTool({ workspace: box.workspace })
    expect(tool).toMatchObject({ name: 'bash', effect: 'once', sequential: true, attempts: 1 })
    expect(tool.timeoutMs).toBeGreaterThan(600_000)
  })

  it('B-BASH-17: without a sandbox asks for every call whatever rules allow, and refuses all where no person can be asked', async () => {
    const attended = bashTool({ workspace: box.workspace, sandbox: open, attended: true })
    const alone = bashTool({ workspace: box.workspace, sandbox: open, attended: false })
    expect(await asked(attended, [{}, { network: true }])).toEqual(['always', 'always'])
    expect(await asked(alone, [{}, { network: true }])).toEqual(['never', 'never'])
    expect(attended.description).toContain('WARNING: NOT SANDBOXED')
    expect(alone.description).toMatch(/WARNING: NOT SANDBOXED.*every call is refused/)
    const unsaid = bashTool({ workspace: box.workspace, sandbox: open })
    expect(await asked(unsaid, [{}])).toEqual([process.stdin.isTTY ? 'always' : 'never'])
  })

  it('B-BASH-17: in the sandbox asks for the network whatever rules allow, attended or not', async () => {
    const calls = [{}, { network: false }, { network: true }, { network: 'yes' }]
    for (const attended of [true, false]) {
      const tool = bashTool({ workspace: box.workspace, sandbox: walls, attended })
      expect(await asked(tool, calls)).toEqual(['auto', 'auto', 'always', 'always'])
      expect(tool.description).not.toContain('WARNING')
    }
  })

  it('B-BASH-17: is not waved through by a rule that allows everything', async () => {
    const settings = [
      { sandbox: open, attended: false },
      { sandbox: open, attended: true },
      { sandbox: walls, attended: true, network: true },
    ]
    for (const { network = false, ...options } of settings) {
      const call = { tool: 'bash', args: { command: 'echo x > ran', network } }
      const harness = new Harness({
        model: scripted([{ calls: [call] }, 'done']),
        tools: [bashTool({ workspace: box.workspace, ...options })],
        approvals: { policy: { rules: [{ effect: 'allow' }] } },
      })
      await harness.run('go')
      await harness.close()
      expect(existsSync(join(box.workspace, 'ran'))).toBe(false)
    }
  })

  it('B-BASH-20: asks before a command that looks risky and refuses one that is never right', async () => {
    const strict = bashTool({ workspace: box.workspace, sandbox: walls })
    const relaxed = bashTool({ workspace: box.workspace, sandbox: walls, risk: 'relaxed' })
    // Read, write inside, neither can be told, and a disaster.
    const calls = [{ command: 'ls' }, { command: 'touch x' }, { command: 'eval "$X"' }, { command: 'rm -rf /' }]
    expect(await asked(strict, calls)).toEqual(['auto', 'auto', 'ask', 'never'])
    expect(await asked(relaxed, calls)).toEqual(['auto', 'auto', 'auto', 'never'])
    const bare = bashTool({ workspace: box.workspace, sandbox: open, attended: true, risk: 'relaxed' })
    expect(await asked(bare, calls)).toEqual(['always', 'always', 'always', 'never'])
    expect(await asked(strict, [{ command: 'rm -rf /', network: true }])).toEqual(['never'])
  })

  it('B-BASH-18: refuses arguments it does not know or cannot pass on', () => {
    const { validate } = bashTool({ workspace: box.workspace })
    const commands = [{}, { command: '' }, { command: 1 }, { command: 'a\0b' }, { command: 'x'.repeat(100_001) }]
    const others = [{ timeout_ms: 0 }, { timeout_ms: 600_001 }, { timeout_ms: 1.5 }, { network: 'yes' }, { cwd: '/' }]
    for (const args of [...commands, ...others.map((more) => ({ command: 'x', ...more }))]) {
      expect(validate(args)).toHaveProperty('issues')
    }
    const args = { command: 'x', timeout_ms: 600_000, soft_timeout_ms: 1, network: true }
    expect(validate(args)).toEqual({ value: args })
  })

  it('B-BASH-18: runs a command as long as it accepts', async () => {
    const command = `true ${'x'.repeat(99_990)}`
    expect(await box.run(command, {}, noBubblewrap ? { sandbox: open } : {})).toMatchObject({ exit_code: 0 })
  })

  it('B-BASH-19: shows each line to watchers, bounded in length and number', async () => {
    const lines: BashLine[] = []
    const options = { sandbox: open, onLine: (line: BashLine) => lines.push(line) }
    await box.run('echo é; echo bad >&2', {}, options)
    expect(lines).toContainEqual({ type: 'bash_stdout_line', stream: 'stdout', line: 'é', session: 's', call: '1.0' })
    expect(lines).toContainEqual({ type: 'bash_stdout_line', stream: 'stderr', line: 'bad', session: 's', call: '1.0' })
    lines.length = 0
    await box.run('printf "first\\nlast"; printf "bad é" >&2', {}, options)
    expect(lines.map(({ line }) => line).toSorted()).toEqual(['bad é', 'first', 'last'])
    lines.length = 0
    await box.run(`head -c 5000 /dev/zero | tr '\\0' x; echo; seq 20000`, {}, options)
    expect(Math.max(...lines.map(({ line }) => line.length))).toBe(2_000)
    expect(lines).toHaveLength(5_000)
  })

  it('B-BASH-31: a command in the background goes on without limits of time, and can be stopped', async () => {
    const ends: Promise<CommandEnd>[] = []
    const onRunning = (running: RunningCommand): void => {
      expect(running.sendToBackground()).toBe(true)
      expect(running.sendToBackground()).toBe(false)
      ends.push(running.ended)
      if (running.command.includes('for ever')) running.stop()
    }
    const [sandbox, limits] = [noBubblewrap ? { sandbox: open } : {}, { timeout_ms: 1, soft_timeout_ms: 1 }]
    const file = join(box.workspace, 'made')
    const made = await box.run(`sleep 0.3; echo late; touch '${file}'; exit 3`, limits, { ...sandbox, onRunning })
    expect(made).toMatchObject({ exit_code: null, background: true })
    expect(made.message).toContain('goes on')
    expect(await ends[0]).toMatchObject({ exitCode: 3, text: 'late' })
    expect(existsSync(file)).toBe(true)
    await box.run('sleep 999 # for ever', limits, { ...sandbox, onRunning })
    expect(await ends[1]).toMatchObject({ exitCode: null })
    expect(processesWith('sleep 999 # for ever')).toEqual([])
  })

  it('B-BASH-31: one that has ended goes nowhere, and what it left at protected places is told', async () => {
    const seen: RunningCommand[] = []
    await box.run('true', {}, { sandbox: open, onRunning: (running) => void seen.push(running) })
    expect(seen[0]?.sendToBackground()).toBe(false)
    expect(await seen[0]?.ended).toMatchObject({ exitCode: 0, text: '' })
    if (noBubblewrap) return
    const onRunning = (running: RunningCommand): void => {
      running.sendToBackground()
      seen.push(running)
    }
    await box.run('mkdir .git; echo x > .git/config', {}, { onRunning })
    expect((await seen[1]?.ended)?.text).toContain('protected_set_aside')
  })

  it('B-BASH-30: readers of the session get each line as it comes (S1-24, S1-39)', async () => {
    const bash: Tool = { ...bashTool({ workspace: box.root, sandbox: open }), approval: () => 'auto' }
    const model = scripted([{ calls: [{ tool: 'bash', args: { command: 'echo one; echo two >&2' } }] }, 'Done.'])
    const harness = new Harness({ model, tools: [bash] })
    const lines: string[] = []
    const stream = harness.stream('go', { deltas: true })
    for await (const event of stream) if (event.type === 'delta' && event.kind === 'output') lines.push(event.text)
    expect(lines.toSorted()).toEqual(['one\n', 'two\n'])
    await harness.close()
  })

  it.skipIf(noBubblewrap || !existsSync('/bin/bash'))(
    'B-BASH-27: a command that kills the shell around it, or all of them, ends at once',
    async () => {
      for (const command of [
        'kill -9 $PPID; sleep 60',
        'echo said; pkill -9 bash; kill -9 -1; sleep 60',
        'kill -9 $$',
      ]) {
        const output = await box.output({ command, soft_timeout_ms: 9_000 })
        const { exit_code: code, timed_out: late } = JSON.parse(output.content) as Result
        expect([command, code, late]).toEqual([command, 137, undefined])
        expect(output.metadata['duration_ms']).toBeLessThan(4_000)
      }
    },
  )

  it.skipIf(noBubblewrap)(
    'B-BASH-23: walls that do not stand the first time are raised again, and the command runs once',
    async () => {
      const [shim, marker] = [join(box.root, 'bwrap'), join(box.root, 'stumble')]
      const stumble = `[ -e ${marker} ] && rm ${marker} && echo 'a file to hide is gone' >&2 && exit 1`
      writeFileSync(shim, `#!/bin/sh\n${stumble}\nexec /usr/bin/bwrap "$@"\n`, { mode: 0o755 })
      const options = { sandbox: { type: 'bwrap', path: shim } } as const
      await box.run('true', {}, options)
      writeFileSync(marker, '')
      expect(await box.run('echo once >> ran; cat ran', {}, options)).toMatchObject({ stdout: 'once\n' })
      expect(existsSync(marker)).toBe(false)
    },
  )

  it.skipIf(noBubblewrap)(
    'B-BASH-24: a socket of the host in no hidden folder is not reached, and hooks of a repository within are not written',
    async () => {
      const path = join(box.root, 'daemon.sock')
      let met = 0
      const server = createServer(() => void (met += 1))
      await new Promise<void>((resolve) => server.listen(path, resolve))
      const hook = box.write('ws/sub/.git/hooks/pre-commit', 'ours')
      const connect = `node -e 'require("net").connect(process.argv[1]).on("error", () => {})' ${path}`
      await box.run(`${connect}; echo evil > sub/.git/hooks/pre-commit; echo fine > sub/.git/index`)
      expect(met).toBe(0)
      expect(readFileSync(hook, 'utf8')).toBe('ours')
      expect(readFileSync(join(box.workspace, 'sub/.git/index'), 'utf8')).toBe('fine\n')
      server.close()
    },
  )

  it('B-BASH-1: gives the envelope every tool gives', async () => {
    const tool = bashTool({ workspace: box.workspace, sandbox: open })
    const done = await executeTool(tool, { command: 'echo x > made' }, box.context())
    expect(done).toMatchObject({ type: 'ok', output: { ok: true } })
    expect(readFileSync(join(box.workspace, 'made'), 'utf8')).toBe('x\n')
  })
})
