// Undo: the changes of write and edit in a run are reverted, newest first, and no change by others is lost. On real files.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Harness, type Script, scripted, sqlite, type CompleteStore, type UndoneCall } from '../../src/index.ts'
import { fileTools } from '../../src/tools/index.ts'

let root = ''
let folder = ''
let store: CompleteStore
const open: Harness[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'terret-undo-'))
  root = mkdtempSync(join(folder, 'ws-'))
  store = sqlite(join(folder, 'terret.db'))
})
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

function make(script: Script, secrets = {}): Harness {
  const harness = new Harness({ model: scripted(script), tools: fileTools({ root }), store, secrets })
  open.push(harness)
  return harness
}

const said = (undone: readonly UndoneCall[]) => undone.map(({ what, result }) => `${what} ${result}`).sort()
const put = (name: string, text: string | Buffer): void => writeFileSync(join(root, name), text)
const text = (name: string): string => readFileSync(join(root, name), 'utf8')
const write = (path: string, content: string) => ({ tool: 'write', args: { path, content } })
const edit = (path: string, ...pairs: readonly (readonly [string, string])[]) => ({
  tool: 'edit',
  args: { edits: pairs.map(([old_string, new_string]) => ({ path, old_string, new_string })) },
})

describe('undo of a run', () => {
  it('B-UNDO-1: files come back as they were, new ones go, and several changes of one file are taken back in turn', async () => {
    put('a.txt', 'one two\n')
    put('b.bin', Buffer.from([0xff, 0xfe, 0x00, 0x80]))
    const harness = make([
      { calls: [edit('a.txt', ['one', '1'], ['two', '2']), write('new.txt', 'fresh'), write('b.bin', 'text now')] },
      { calls: [write('a.txt', 'all else')] },
      'done',
    ])
    const { sessionId } = await harness.run('change')
    expect(text('a.txt')).toBe('all else')
    const undone = await harness.session(sessionId).undo()
    expect(said(undone)).toEqual([
      'a.txt restored',
      'a.txt restored',
      'a.txt restored',
      'b.bin restored',
      'new.txt removed',
    ])
    expect(text('a.txt')).toBe('one two\n')
    expect(readFileSync(join(root, 'b.bin'))).toEqual(Buffer.from([0xff, 0xfe, 0x00, 0x80]))
    expect(existsSync(join(root, 'new.txt'))).toBe(false)
  })

  it('B-UNDO-2: a file changed by others since is left alone, and so is what could not be kept', async () => {
    put('mine.txt', 'before')
    put('key.txt', 'token=hunter2-hunter2')
    const harness = make([{ calls: [write('mine.txt', 'after'), write('key.txt', 'gone')] }, 'done'], {
      TOKEN: 'hunter2-hunter2',
    })
    const { sessionId } = await harness.run('change')
    put('mine.txt', 'by a person')
    const undone = await harness.session(sessionId).undo()
    expect(said(undone)).toEqual(['key.txt not_kept', 'mine.txt changed_since'])
    expect(text('mine.txt')).toBe('by a person')
    expect(text('key.txt')).toBe('gone')
  })

  it('B-UNDO-3: an earlier run is taken back by its number, a second undo changes nothing, and the model is told', async () => {
    put('a.txt', 'zero')
    let told = ''
    const harness = make([
      { calls: [write('a.txt', 'first')] },
      'done',
      { calls: [write('b.txt', 'second')] },
      'done',
      (request) => {
        told = JSON.stringify(request.messages)
        return 'I see'
      },
    ])
    const { sessionId } = await harness.run('one')
    const session = harness.session(sessionId)
    await session.run('two')
    const starts = (await session.events()).events.filter((event) => event.type === 'run.started')
    await session.undo(starts[0]?.seq)
    expect(text('a.txt')).toBe('zero')
    expect(text('b.txt')).toBe('second')
    await session.undo(starts[0]?.seq)
    expect(text('a.txt')).toBe('zero')
    for (const wrong of [0, -3, 1.5, Number.NaN, 1, 2])
      await expect(session.undo(wrong)).rejects.toMatchObject({ code: 'invalid_input' })
    await session.run('three')
    expect(told).toContain('a.txt: put back as it was before')
  })

  it('B-UNDO-1: calls of one turn that worked on one file are taken back whatever their order was', async () => {
    put('a.txt', 'zero')
    const harness = make([{ calls: ['one', 'two', 'three', 'four'].map((content) => write('a.txt', content)) }, 'done'])
    const { sessionId } = await harness.run('race')
    const undone = await harness.session(sessionId).undo()
    expect(undone).toHaveLength(4)
    expect(text('a.txt')).toBe('zero')
  })

  it('B-UNDO-3: a second undo of several changes of one file finds nothing that others changed', async () => {
    put('a.txt', 'zero')
    const harness = make([{ calls: [write('a.txt', 'one')] }, { calls: [edit('a.txt', ['one', 'two'])] }, 'done'])
    const { sessionId } = await harness.run('change')
    const session = harness.session(sessionId)
    for (let times = 0; times < 2; times++) {
      expect(said(await session.undo())).toEqual(['a.txt restored', 'a.txt restored'])
      expect(text('a.txt')).toBe('zero')
    }
    put('a.txt', 'by a person')
    expect(said(await session.undo())).toEqual(['a.txt changed_since', 'a.txt changed_since'])
  })

  it('B-UNDO-5: what the subagents of a run changed is taken back with it, and nothing of those of another run', async () => {
    put('a.txt', 'zero')
    const child = (n: number) =>
      scripted([{ calls: [write('a.txt', `child ${n}`), write(`new${n}.txt`, 'x')] }, 'did it'])
    const task = (agent: string) => ({ tool: 'subagent', args: { agent, task: 'change it' } })
    const helper = (n: number) => ({ description: 'changes files', model: child(n), tools: fileTools({ root }) })
    const script = [{ calls: [write('a.txt', 'parent')] }, { calls: [task('helper1')] }, 'done']
    const model = scripted([...script, { calls: [task('helper2')] }, 'done again'])
    const harness = new Harness({
      model,
      tools: fileTools({ root }),
      store,
      subagents: { helper1: helper(1), helper2: helper(2) },
    })
    open.push(harness)
    const { sessionId } = await harness.run('one')
    const session = harness.session(sessionId)
    expect(text('a.txt')).toBe('child 1')
    await session.run('two')
    expect(said(await session.undo())).toEqual(['a.txt restored', 'new2.txt removed'])
    expect(text('a.txt')).toBe('child 1')
    const starts = (await session.events()).events.filter((event) => event.type === 'run.started')
    expect(said(await session.undo(starts[0]?.seq))).toEqual(['a.txt restored', 'a.txt restored', 'new1.txt removed'])
    expect(text('a.txt')).toBe('zero')
  })

  it('B-UNDO-4: an open run is not undone, and a write that changed nothing is nothing to undo', async () => {
    put('same.txt', 'same')
    const tools = [write('same.txt', 'same')]
    const harness = make([{ calls: tools }, 'done', { stall: true }])
    const { sessionId } = await harness.run('one')
    const session = harness.session(sessionId)
    expect(await session.undo()).toEqual([])
    expect(text('same.txt')).toBe('same')
    await session.send('two')
    for (;;) {
      const { events } = await session.events()
      if (events.filter((event) => event.type === 'model.started').length === 3) break
      await new Promise((resolve) => setImmediate(resolve))
    }
    await expect(session.undo()).rejects.toMatchObject({ code: 'session_busy' })
    await session.interrupt()
  })
})
