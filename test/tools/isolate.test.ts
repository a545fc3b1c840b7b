// Handlers in modules: in this process, and in a thread that can be ended. Real threads, real modules on disk.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, scripted, type Tool } from '../../src/index.ts'
import { runInThread } from '../../src/tools/core/isolate.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import { toolContext } from './context.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-isolate-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** What a module imports as `terret` is the built one: in a thread of its own it is another copy than ours. */
const terret = new URL('../../.build/src/index.js', import.meta.url).href
let modules = 0

function moduleOf(body: string): URL {
  modules += 1
  const path = join(folder, `handler-${modules}.mjs`)
  const head = body.includes('ToolFailure(') || body.includes('ModelRetry(') || body.includes('output(')
  writeFileSync(path, `${head ? `import { ModelRetry, output, ToolFailure } from '${terret}'\n` : ''}${body}`)
  return pathToFileURL(path)
}

const input = z.record(z.string(), z.unknown())

function tool(body: string, extra: Partial<Parameters<typeof defineTool<unknown>>[0]> = {}): Tool {
  const module = moduleOf(body)
  return defineTool<unknown>({ name: 'crunch', description: 'crunches', input, module, isolate: true, ...extra })
}

async function run(body: string, args: unknown = {}, signal = new AbortController().signal) {
  return executeTool(tool(body), args, toolContext({ call: '3.1', signal }))
}

describe('a handler in a module', () => {
  it('B-ISOLATE-1: is loaded by its first call and runs in process, with the whole context', async () => {
    const here = tool('export const execute = ({ n }, { key, keep }) => [process.pid, n, key, keep("text").bytes]', {
      isolate: false,
    })
    const done = await executeTool(here, { n: 1 }, toolContext({ call: '3.1' }))
    expect(done).toMatchObject({
      type: 'ok',
      output: { content: JSON.stringify([process.pid, 1, 's:3.1', 4], null, 2) },
    })
    const absent = defineTool({
      name: 'absent',
      description: 'absent',
      input,
      module: pathToFileURL(join(folder, 'absent.mjs')),
    })
    expect((await executeTool(absent, {}, toolContext())).type).toBe('failed')
    const empty = await executeTool(tool('export const other = 1', { isolate: false }), {}, toolContext())
    expect(empty).toMatchObject({ type: 'failed', kind: 'Unavailable' })
  })

  it('B-ISOLATE-2: a tool with "execute" and "module", or isolated without a module, is not made', () => {
    const parts = { name: 'a', description: 'a', input }
    expect(() => defineTool({ ...parts, isolate: true, execute: () => 1 })).toThrow('without "module"')
    expect(() => defineTool({ ...parts, module: moduleOf(''), execute: () => 1 })).toThrow('Remove one of them')
    expect(defineTool({ ...parts, module: moduleOf('') }).outside).toBe(false)
  })
})

describe('an isolated handler', () => {
  it('B-ISOLATE-3: runs in a thread of its own, with session, call and key, and an environment without secrets', async () => {
    process.env['TERRET_TEST_SECRET'] = 'hush'
    const body = `import { threadId, isMainThread } from 'node:worker_threads'
      export const execute = (args, context) => ({ args, context, isMainThread, env: process.env.TERRET_TEST_SECRET ?? null })`
    const done = await run(body, { n: [1, { x: null }] })
    delete process.env['TERRET_TEST_SECRET']
    if (done.type !== 'ok') throw new Error(JSON.stringify(done))
    expect(JSON.parse(done.output.content)).toEqual({
      args: { n: [1, { x: null }] },
      context: { session: 's', call: '3.1', key: 's:3.1' },
      isMainThread: false,
      env: null,
    })
  })

  it('B-ISOLATE-4: hands back text, JSON and envelopes; its failures keep their kinds, and other errors name and message', async () => {
    expect(await run('export const execute = async () => "plain"')).toMatchObject({ output: { content: 'plain' } })
    const enveloped = await run('export const execute = () => output({ content: "c", metadata: { m: 1 } })')
    expect(enveloped).toMatchObject({ type: 'ok', output: { ok: true, content: 'c', metadata: { m: 1 } } })
    const failed = await run(
      'export const execute = () => { throw new ToolFailure("NotFound", "no such thing", { what: 1 }) }',
    )
    expect(failed).toMatchObject({
      type: 'failed',
      kind: 'NotFound',
      output: { content: 'no such thing', metadata: { what: 1 } },
    })
    const retried = await run('export const execute = () => { throw new ModelRetry("not like this") }')
    expect(retried).toMatchObject({ type: 'failed', retryKind: 'ModelRetry', output: { content: 'not like this' } })
    const thrown = await run('export const execute = async () => { throw new RangeError("too far") }')
    expect(thrown).toMatchObject({
      kind: 'Failed',
      output: { content: 'RangeError: too far', metadata: { error_type: 'RangeError' } },
    })
    expect(await run('export const execute = () => { throw 5 }')).toMatchObject({ kind: 'Failed' })
    expect(await run('export const execute = 1')).toMatchObject({ kind: 'Unavailable' })
    expect(await run('export const execute = ((')).toMatchObject({ kind: 'Failed' })
  })

  it('B-ISOLATE-5: what cannot be copied to another thread is a failure, as a result and as an argument', async () => {
    const done = await run('export const execute = () => ({ f: () => 1 })')
    expect(done).toMatchObject({ type: 'failed', output: { metadata: { error_type: 'DataCloneError' } } })
    expect(await run('export const execute = () => 1', { f: () => 1 })).toMatchObject({ type: 'failed' })
  })

  it('B-ISOLATE-6: a thread that exits, breaks or takes too much memory is a failure with what it printed, and nothing else', async () => {
    const exits = await run(
      'export const execute = async () => { console.log("said"); await new Promise((go) => setTimeout(go, 50)); process.exit(3) }',
    )
    expect(exits).toMatchObject({ kind: 'Failed', output: { metadata: { stdout: 'said\n' } } })
    const breaks = 'export const execute = () => new Promise(() => setImmediate(() => { throw new Error("late") }))'
    expect((await run(breaks)).type).toBe('failed')
    const rejects = 'export const execute = () => new Promise(() => void Promise.reject(new Error("nobody listens")))'
    expect((await run(rejects)).type).toBe('failed')
    const waits = 'export const execute = () => new Promise(() => {})'
    expect((await run(waits)).type).toBe('failed')
    const greedy = moduleOf(
      'export const execute = () => { const all = []; for (;;) all.push(new Array(1000).fill(all.length)) }',
    )
    await expect(runInThread(greedy, {}, toolContext(), 16)).rejects.toThrow('more than 16 MB')
  })

  it('B-ISOLATE-7: prints nothing to this process', async () => {
    const child = `console.log('to stdout'); console.error('to stderr'); process.stdout.write('raw')
      export const execute = () => 'done'`
    const written: string[] = []
    const { stdout, stderr } = process
    const before = [stdout.write.bind(stdout), stderr.write.bind(stderr)] as const
    const note = (chunk: unknown): boolean => written.push(String(chunk)) > 0
    stdout.write = note
    stderr.write = note
    const done = await run(child)
    stdout.write = before[0]
    stderr.write = before[1]
    expect([done.type, written.filter((text) => text.includes('to std') || text === 'raw')]).toEqual(['ok', []])
  })

  it('B-ISOLATE-8: an endless loop is ended by an abort, and one that was aborted before is never started', async () => {
    const stop = new AbortController()
    const flag = new Int32Array(new SharedArrayBuffer(4))
    const body = 'export const execute = ({ flag }) => { Atomics.store(flag, 0, 1); for (;;) Atomics.add(flag, 0, 1) }'
    const running = run(body, { flag }, stop.signal)
    while (Atomics.load(flag, 0) === 0) await new Promise((go) => setImmediate(go))
    stop.abort()
    expect(await running).toMatchObject({ type: 'failed', kind: 'Interrupted' })
    const at = Atomics.load(flag, 0)
    await new Promise((go) => setTimeout(go, 20))
    expect(Atomics.load(flag, 0)).toBe(at)
    Atomics.store(flag, 0, 0)
    expect(await run(body, { flag }, stop.signal)).toMatchObject({ kind: 'Interrupted' })
    expect(Atomics.load(flag, 0)).toBe(0)
  })

  it('B-ISOLATE-9: an endless loop is stopped by the timeout of its tool, and the other calls of the turn go on meanwhile', async () => {
    let quick = 0
    const spin = tool('export const execute = () => { for (;;); }', {
      name: 'spin',
      effect: 'idempotent',
      timeoutMs: 400,
    })
    const other = defineTool({
      name: 'quick',
      description: 'quick',
      input,
      effect: 'read',
      execute: () => `quick ${++quick}`,
    })
    const harness = new Harness({
      model: scripted([{ calls: [{ tool: 'spin' }, { tool: 'quick' }, { tool: 'quick' }] }, 'over']),
      tools: [spin, other],
    })
    const result = await harness.run('go')
    const { events } = await harness.session(result.sessionId).events()
    await harness.close()
    const results = events.filter((event) => event.type === 'agent.tool_result')
    expect([result.status, quick]).toEqual(['completed', 2])
    expect(results.map(({ status }) => status).toSorted()).toEqual(['ok', 'ok', 'timeout'])
    // Both results came before the endless loop was stopped: it blocked no other call.
    expect(results.at(-1)?.status).toBe('timeout')
  })
})
