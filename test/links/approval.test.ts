// An approval of a file change is for the file that was shown: the place that links lead to, and the bytes that are there.
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  memory,
  type Policy,
  type Script,
  scripted,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import { redecide } from '../../src/archive/replay-decide.ts'
import { readLog } from '../../src/view/session-log.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import { previewOf } from '../../src/tools/files/preview-call.ts'
import { until } from '../until.ts'

let root = ''
const at = (path: string): string => join(root, path)
const text = (path: string): string => readFileSync(at(path), 'utf8')
const put = (path: string, said: string): void => {
  mkdirSync(join(at(path), '..'), { recursive: true })
  writeFileSync(at(path), said)
}
const turn = (link: string, target: string): void => {
  rmSync(at(link), { force: true })
  symlinkSync(target, at(link))
}

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'terret-links-')))
  put('A/x', 'one\n')
  put('B/x', 'two\n')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** Stands for a command that runs unasked beside the question. */
const swap = (work: () => void): Tool =>
  defineTool({
    name: 'bash',
    description: 'bash',
    input: z.object({}),
    sequential: true,
    execute: () => (work(), 'done'),
  })

const ASK: Policy = { rules: [{ effect: 'ask', tool: ['write', 'edit'] }] }

type Opened = { readonly store?: CompleteStore; readonly tools?: readonly Tool[] }
const harness = (script: Script, { store = memory(), tools = [] }: Opened = {}): Harness =>
  new Harness({ model: scripted(script), tools: [...fileTools({ root }), ...tools], approvals: { policy: ASK }, store })

const call = (tool: string, args: Record<string, unknown>) => ({ tool, args: args as never })
const write = (path: string, content = 'new\n') => call('write', { path, content })
const edit = (path: string) => call('edit', { edits: [{ path, old_string: 'o', new_string: '0' }] })

describe('an approved change', () => {
  it.each([
    ['write', write('out/x')],
    ['edit', edit('out/x')],
  ])('B-LINK-1: of %s is asked again when a call of the same reply turns the link on the way', async (_, asked) => {
    turn('out', 'A')
    const swapped = swap(() => turn('out', 'B'))
    const h = harness([{ calls: [call('bash', {}), asked] }, 'done'], { tools: [swapped] })
    const first = await h.run('go')
    const session = h.session(first.sessionId)
    await session.decide({ callId: first.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    const second = await session.run()
    expect(text('B/x')).toBe('two\n')
    expect(text('A/x')).toBe('one\n')
    expect(second.status).toBe('requires_action')
    expect(second.pending[0]?.digest).not.toBe(first.pending[0]?.digest)
    await session.decide({ callId: second.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect((await session.run()).status).toBe('completed')
    expect(text('B/x')).not.toBe('two\n')
    await h.close()
  })

  it('B-LINK-2: is asked again when the bytes of the file changed after the yes, and shows them; B-REPLAY-20: which is decided again the same', async () => {
    const store = memory()
    const h = harness([{ calls: [write('A/x')] }, 'done'], { store })
    const first = await h.run('go')
    const session = h.session(first.sessionId)
    await session.decide({ callId: first.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    put('A/x', 'somebody wrote this meanwhile\n')
    const second = await session.run()
    expect(second.status).toBe('requires_action')
    expect(text('A/x')).toBe('somebody wrote this meanwhile\n')
    await session.decide({ callId: second.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    await session.run()
    expect(text('A/x')).toBe('new\n')
    expect(redecide(await readLog(store, session.id))).toEqual([])
    await h.close()
  })

  it.each([
    ['the parent folder becomes a link', () => (renameSync(at('A'), at('A2')), symlinkSync('B', at('A')))],
    ['the file becomes a link', () => (unlinkSync(at('A/x')), symlinkSync('../B/x', at('A/x')))],
    ['the file is gone', () => unlinkSync(at('A/x'))],
  ])('B-LINK-3: is asked again when %s', async (_, change) => {
    const h = harness([{ calls: [write('A/x')] }, 'done'])
    const first = await h.run('go')
    const session = h.session(first.sessionId)
    await session.decide({ callId: first.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    change()
    expect((await session.run()).status).toBe('requires_action')
    expect(text('B/x')).toBe('two\n')
    await h.close()
  })

  it('B-LINK-4: runs unasked after calls of its own session changed the same file', async () => {
    const calls = [write('A/x', 'oa\n'), call('edit', { edits: [{ path: 'A/x', old_string: 'a', new_string: 'b' }] })]
    const h = harness([{ calls }, 'done'])
    const first = await h.run('go')
    const session = h.session(first.sessionId)
    for (const { callId } of first.pending) await session.decide({ callId, allow: true, by: 'ana' })
    expect((await session.run()).status).toBe('completed')
    expect(text('A/x')).toBe('ob\n')
    await h.close()
  })

  it('B-LINK-10: shows a difference only while the file is what the digest holds', async () => {
    const h = harness([{ calls: [write('A/x')] }, 'done'])
    const { sessionId, pending } = await h.run('go')
    const [asked] = pending
    if (!asked) throw new Error('nothing is asked')
    const seen = await previewOf(root, asked)
    expect(seen.files?.[0]).toMatchObject({ path: 'A/x', state: 'changed' })
    put('A/x', 'other bytes\n')
    const changed = await previewOf(root, asked)
    expect(changed.files).toBeNull()
    expect(changed.warnings.join()).toContain('A/x changed since this was asked')
    await h.session(sessionId).decide({ ...asked, allow: true, by: 'ana' })
    const [again] = (await h.session(sessionId).run()).pending
    if (!again) throw new Error('nothing is asked again')
    expect((await previewOf(root, again)).files?.[0]?.lines.map(({ text: line }) => line)).toContain('other bytes')
    await h.close()
  })

  it('B-LINK-10: says where a path leads that goes through a link', async () => {
    turn('out', 'A')
    const { warnings } = await previewOf(root, write('out/x'))
    expect(warnings).toEqual(['The path "out/x" leads through a link to "A/x".'])
    expect((await previewOf(root, write('A/x'))).warnings).toEqual([])
  })

  it.each([
    ['is done already', 'new\n', 'completed'],
    ['holds other bytes', 'other bytes\n', 'requires_action'],
  ])('B-LINK-11: whose worker was lost after it began checks the file again: it %s', async (_, now, status) => {
    const store = memory()
    let [begun, isDead] = [0, false]
    // The store as a process sees it that is then killed: nothing of it arrives any more.
    const whileAlive = new Proxy(store, {
      get: (target, name: keyof CompleteStore, outer: unknown) => {
        const found = target[name]
        if (typeof found !== 'function') return found === target ? outer : found
        return (...args: readonly never[]): unknown =>
          isDead ? new Promise(() => {}) : (Reflect.apply(found, target, args) as unknown)
      },
    })
    const make = (hangs: boolean): Harness => {
      const stuck = (tool: Tool): Tool =>
        hangs && tool.name === 'write' ? { ...tool, execute: () => new Promise(() => void (begun += 1)) } : tool
      const tools = fileTools({ root }).map(stuck)
      return new Harness({
        model: scripted(hangs ? [{ calls: [write('A/x')] }] : ['done']),
        tools,
        approvals: { policy: ASK },
        store: hangs ? whileAlive : store,
        worker: { leaseMs: 1_500 },
      })
    }
    const first = make(true)
    const { sessionId, pending } = await first.run('go')
    await first.session(sessionId).decide({ callId: pending[0]?.callId ?? '', allow: true, by: 'ana' })
    void first.session(sessionId).run()
    await until(() => expect(begun).toBe(1))
    isDead = true
    put('A/x', now)
    const second = make(false)
    expect((await second.session(sessionId).run()).status).toBe(status)
    expect(text('A/x')).toBe(now)
    await second.close()
  })

  it('B-LINK-12: that no person was asked about is asked about when a link leads it to what a rule asks about', async () => {
    const swapped = swap(() => turn('out', 'B'))
    const calls = [call('bash', {}), write('out/x'), call('read', { path: 'out/x' })]
    const policy: Policy = {
      rules: [
        { effect: 'ask', tool: 'write', path: 'B/**' },
        { effect: 'deny', tool: 'read', path: 'B/**' },
      ],
    }
    const h = new Harness({
      model: scripted([{ calls }, 'done']),
      tools: [...fileTools({ root }), swapped],
      approvals: { policy },
    })
    const result = await h.run('go')
    expect(result.status).toBe('requires_action')
    expect(text('B/x')).toBe('two\n')
    await h.session(result.sessionId).decide({ callId: result.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    const done = await h.session(result.sessionId).run()
    expect(text('B/x')).toBe('new\n')
    expect(done.calls.find(({ tool }) => tool === 'read')?.status).not.toBe('ok')
    await h.close()
  })
})
