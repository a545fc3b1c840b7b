// Traces in files: where they are, their permissions, what a crash leaves, and what must never be in them.
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { localTraces, type LocalOptions, readTrace, type Sink, type Span, spansOf } from '../../src/tracing/index.ts'
import { stage, tracerOn } from './stage.ts'
import { simple, Tale } from './tale.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'terret-traces-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const sinkIn = (over: LocalOptions = {}) => localTraces({ dir, name: '/home/ana/My Project', env: {}, ...over })

describe('a local trace', () => {
  it('B-TRACE-20: is one file of JSON lines per trace, in a folder named after the project (S0-67)', async () => {
    const sink = sinkIn()
    const spans = spansOf([simple('one'), simple('two')])
    await give(sink, spans)
    const sha = createHash('sha1').update('/home/ana/My Project').digest('hex').slice(0, 10)
    expect(readdirSync(dir)).toEqual([`my-project-${sha}`])
    const files = readdirSync(sink.folder)
    expect(files.toSorted()).toEqual([...new Set(spans.map(({ traceId }) => `${traceId}.jsonl`))].toSorted())
    const [run, chat] = await readTrace(join(sink.folder, `${spans[0]?.traceId}.jsonl`))
    const fields =
      'type trace_id span_id parent_id name kind started_at ended_at duration_ms attributes status exceptions'
    expect(Object.keys(run ?? {})).toEqual(fields.split(' '))
    expect(run).toMatchObject({ type: 'span', parent_id: null, name: 'invoke_agent tester', status: 'unset' })
    expect(chat).toMatchObject({ parent_id: run?.span_id, started_at: '1970-01-01T00:00:01.030Z', duration_ms: 10 })
  })

  it('B-TRACE-20: has its children in it: they open no file of their own (S0-67)', async () => {
    const root = new Tale('root')
    root.begin()
    root.ask()
    const seq = root.reply([{ ...subagent, id: 'a' }])
    root.add({ type: 'agent.custom_tool_use', call: `${seq}.0` })
    const child = new Tale(`root~${seq}.0`, { session: 'root', call: `${seq}.0`, root: 'root', depth: 1 })
    child.begin()
    const sink = sinkIn()
    await give(sink, spansOf([root, child]))
    expect(readdirSync(sink.folder)).toHaveLength(1)
  })

  it('B-TRACE-20: holds an open span without its end', async () => {
    const tale = new Tale('open')
    tale.begin()
    const sink = sinkIn()
    await give(sink, spansOf([tale]))
    expect(await onlyTrace(sink.folder)).toMatchObject([{ ended_at: null, duration_ms: null }])
  })

  it('B-TRACE-31: with a bound the oldest traces of the project go first, by number and by size; other files stay', async () => {
    const tale = (n: number) => spansOf([simple(`s${n}`)])
    const keep = { files: 3, bytes: 1_000_000 }
    const names = (folder: string) => readdirSync(folder).toSorted()
    const { folder } = sinkIn()
    // Each as its own process would: the bound is looked after with the first export.
    for (let n = 0; n < 5; n++) {
      await give(sinkIn({ keep }), tale(n))
      for (const [i, name] of readdirSync(folder).entries())
        if (!name.startsWith(tale(n)[0]?.traceId ?? '?')) utimesSync(join(folder, name), n, 1_000 - 100 * i + n)
      writeFileSync(join(folder, 'notes.txt'), 'mine')
    }
    expect(names(folder).filter((name) => name.endsWith('.jsonl'))).toHaveLength(3)
    expect(names(folder)).toContain(`${tale(4)[0]?.traceId}.jsonl`)
    await give(sinkIn({ keep: { files: 10, bytes: 1 } }), tale(5))
    expect(names(folder)).toEqual([`${tale(5)[0]?.traceId}.jsonl`, 'notes.txt'].toSorted())
  })

  it.skipIf(process.platform === 'win32')('B-TRACE-21: can be read by its owner alone', async () => {
    const sink = sinkIn({ capture: 'content' })
    await give(sink, spansOf([simple()]), new Map([['c'.repeat(64), 'text']]))
    const prompts = join(sink.folder, 'prompts')
    const [trace = ''] = readdirSync(sink.folder).filter((name) => name.endsWith('.jsonl'))
    const modes = [sink.folder, prompts, join(sink.folder, trace), join(prompts, `${'c'.repeat(64)}.txt`)].map(modeOf)
    expect(modes).toEqual(['700', '700', '600', '600'])
  })

  it.skipIf(process.platform === 'win32')(
    'B-TRACE-21: a folder that was open to others is closed to them',
    async () => {
      const sink = sinkIn()
      mkdirSync(sink.folder, { recursive: true, mode: 0o777 })
      await give(sink, spansOf([simple()]))
      expect(modeOf(sink.folder)).toBe('700')
    },
  )

  it.skipIf(process.platform === 'win32')('B-TRACE-21: is not written through a link', async () => {
    const sink = sinkIn()
    const spans = spansOf([simple()])
    mkdirSync(sink.folder, { recursive: true })
    const target = join(dir, 'target')
    writeFileSync(target, 'mine\n')
    symlinkSync(target, join(sink.folder, `${spans[0]?.traceId}.jsonl`))
    await expect(give(sink, spans)).rejects.toThrow()
    expect(readFileSync(target, 'utf8')).toBe('mine\n')
    rmSync(sink.folder, { recursive: true })
    mkdirSync(join(dir, 'elsewhere'))
    symlinkSync(join(dir, 'elsewhere'), sink.folder)
    await expect(give(sink, spans)).rejects.toThrow("not a folder of one's own")
    expect(readdirSync(join(dir, 'elsewhere'))).toEqual([])
  })

  it('B-TRACE-22: survives a write that was torn, also within a character (AC-89)', async () => {
    const tale = new Tale('t')
    const input = tale.say('Ω 😀')
    tale.begin([input])
    tale.ask([input])
    tale.reply([])
    tale.settle()
    const [run, chat] = spansOf([tale], { capture: 'content' })
    if (!run || !chat) throw new Error('no spans')
    const sink = sinkIn({ capture: 'content' })
    const file = join(sink.folder, `${run.traceId}.jsonl`)
    await give(sink, [run])
    const before = readFileSync(file).length
    await give(sink, [chat])
    const whole = readFileSync(file)
    expect(whole.toString()).toContain('Ω 😀')
    const said = whole.indexOf('Ω')
    const cuts = [before + 1, before + 50, ...Array.from({ length: 10 }, (_, i) => said - 1 + i), whole.length - 2]
    for (const cut of [...cuts, whole.length - 1]) {
      writeFileSync(file, whole)
      truncateSync(file, cut)
      // Without its last line's end the record is whole, and counts.
      const kept = cut === whole.length - 1 ? [run.spanId, chat.spanId] : [run.spanId]
      expect((await readTrace(file)).map(({ span_id }) => span_id)).toEqual(kept)
      await give(sink, [{ ...chat, spanId: 'after' }])
      expect((await readTrace(file)).map(({ span_id }) => span_id)).toEqual([...kept, 'after'])
    }
  })

  it('B-TRACE-22: passes over what is no record, and takes the later of two records of one span', async () => {
    const file = join(dir, 'x.jsonl')
    const line = (id: string, name: string): string => `${JSON.stringify({ type: 'span', span_id: id, name })}\n`
    writeFileSync(file, line('a', 'first'))
    appendFileSync(file, Buffer.from([0xf0, 0x9f, 0x98, 0x0a]))
    appendFileSync(file, `null\n[]\n{"type":"other"}\n${line('b', 'b')}${line('a', 'second')}`)
    expect((await readTrace(file)).map(({ name }) => name)).toEqual(['second', 'b'])
  })

  it('B-TRACE-23: has what repeats once, in a file named by its hash, and only its hash in a span (TRAP-20)', async () => {
    const instructions = `You are careful. ${'x'.repeat(2_000)}`
    const set = stage(() => 'done', { instructions })
    const sink = sinkIn({ capture: 'content' })
    const tracer = tracerOn(set.store, [sink])
    for (let i = 0; i < 5; i++) await set.tell(tracer, await set.run())
    await tracer.close()
    await set.harness.close()
    const hash = createHash('sha256').update(instructions).digest('hex')
    expect(readFileSync(join(sink.folder, 'prompts', `${hash}.txt`), 'utf8')).toBe(instructions)
    const traces = readdirSync(sink.folder).filter((name) => name.endsWith('.jsonl'))
    expect(traces).toHaveLength(5)
    const written = traces.map((name) => readFileSync(join(sink.folder, name), 'utf8')).join('')
    expect(written).not.toContain('You are careful')
    expect(written.split(hash).length - 1).toBe(5)
    expect(readdirSync(join(sink.folder, 'prompts')).filter((name) => name.startsWith(hash))).toHaveLength(1)
  })

  it('B-TRACE-23: a hash that is none names no file', async () => {
    const sink = sinkIn({ capture: 'content' })
    await give(sink, spansOf([simple()]), new Map([['../../out', 'text']]))
    expect(readdirSync(join(sink.folder, 'prompts'))).toEqual([])
    expect(existsSync(join(dir, 'out.txt'))).toBe(false)
  })

  it.each(['1', 'true', 'YES'])(
    'B-TRACE-24: is not written with TERRET_DISABLE_LOCAL_TRACING=%s (S0-67)',
    async (value) => {
      await give(sinkIn({ env: { TERRET_DISABLE_LOCAL_TRACING: value } }), spansOf([simple()]))
      expect(readdirSync(dir)).toEqual([])
    },
  )

  it.each(['0', 'false', ''])('B-TRACE-24: is written with TERRET_DISABLE_LOCAL_TRACING=%s', async (value) => {
    await give(sinkIn({ env: { TERRET_DISABLE_LOCAL_TRACING: value } }), spansOf([simple()]))
    expect(readdirSync(dir)).toHaveLength(1)
  })

  it('B-TRACE-25: holds no known secret, whatever is captured: it was masked before it became an event (AC-90)', async () => {
    const secret = 'canary-0123456789'
    const set = stage([`the key is ${secret}`], { instructions: `use ${secret}`, secrets: { SERVICE_KEY: secret } })
    const sink = sinkIn({ capture: 'content' })
    const tracer = tracerOn(set.store, [sink])
    await set.tell(tracer, await set.run(`my key is ${secret}`))
    await tracer.close()
    await set.harness.close()
    const files = readdirSync(sink.folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const written = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    expect(written.join('')).toContain('⟦secret:SERVICE_KEY⟧')
    expect(written.filter((text) => text.includes(secret))).toEqual([])
  })
})

const subagent = {
  id: '',
  tool: 'subagent',
  args: {},
  effect: 'once',
  timeoutMs: 1,
  gate: { type: 'outside' },
} as const

async function give(sink: Sink, spans: readonly Span[], texts: ReadonlyMap<string, string> = new Map()): Promise<void> {
  await sink.export(spans, { texts, clock: runtimeClock, signal: new AbortController().signal })
}

async function onlyTrace(folder: string): Promise<readonly unknown[]> {
  return readTrace(join(folder, readdirSync(folder)[0] ?? ''))
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}
