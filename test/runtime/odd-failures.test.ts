// Tools in plain JavaScript say what no type allows: their sessions are written, exported, imported and archived all the same.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { archiveOf, checkArchive, removeArchived, restoreArchive } from '../../src/archive/session-archive.ts'
import { exportSession, importSession } from '../../src/archive/portable.ts'
import { defineTool, Harness, memory, ModelRetry, output, scripted, ToolFailure } from '../../src/index.ts'
import type { Event } from '../../src/kernel/event.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { makeFile } from '../stores/folder.ts'
import { forgeFile } from '../../sim/forge-file.ts'

type Result = Extract<Event, { type: 'agent.tool_result' }>

/** Runs one call of a tool that does this, and returns what was written of it. */
async function writeResult(
  store: CompleteStore,
  execute: () => unknown,
  onError: 'return' | 'fail' = 'return',
): Promise<Result> {
  const input = z.object({})
  const odd = defineTool({ name: 'odd', description: 'odd', input, effect: 'once', execute, onError })
  const model = scripted((request) =>
    request.messages.at(-1)?.role === 'tool' ? 'Seen.' : { calls: [{ tool: 'odd', args: {} }] },
  )
  const harness = new Harness({ model, tools: [odd], store, secrets: {} })
  const session = await harness.open({ id: 'odd' })
  await session.run('Go.')
  await harness.close()
  return readResult(store)
}

async function readResult(store: CompleteStore): Promise<Result> {
  const { events } = await store.read('odd', 0)
  return events.find((event) => event.type === 'agent.tool_result') as Result
}

async function expectCopies(store: CompleteStore): Promise<void> {
  const copy = await exportSession(store, 'odd')
  expect(await importSession(memory(), JSON.parse(JSON.stringify(copy)))).toMatchObject({ session: 'odd' })
  await checkArchive(JSON.parse(JSON.stringify((await archiveOf(store, 'odd')).records)))
}

const thrown = (error: unknown) => (): never => {
  throw error
}
const Failing = ToolFailure as unknown as new (...args: unknown[]) => Error
const Retrying = ModelRetry as unknown as new (...args: unknown[]) => Error
const say = output as unknown as (envelope: unknown) => unknown
const WAKE = { type: 'wake.scheduled', due: 4e12, reason: 'r', key: 'k' }

describe('what a tool without types says', () => {
  it.each<[string, () => unknown]>([
    ['an unknown kind', thrown(new Failing('Broken', 'The pump is broken.'))],
    ['a message as its kind', thrown(new Failing('The pump is broken.'))],
    ['no kind', thrown(new Failing())],
    ['a number as its kind', thrown(new Failing(7, 'x'))],
    ['an object as its kind', thrown(new Failing({ a: 1 }, 'x'))],
    ['a name of Object.prototype as its kind', thrown(new Failing('constructor', 'x'))],
    ['a kind that was changed later', thrown(Object.assign(new Failing('Failed', 'x'), { kind: 'Broken' }))],
    ['an object as its message', thrown(new Failing('Failed', { a: 1 }))],
    ['a message that was changed to a number', thrown(Object.assign(new Failing('Failed', 'x'), { message: 7 }))],
    ['no metadata', thrown(new Failing('Failed', 'x', null))],
    ['a text as its metadata', thrown(new Failing('Failed', 'x', 'text'))],
    ['metadata that is no JSON', thrown(new Failing('Failed', 'x', { big: 1n, when: new Date(), nan: Number.NaN }))],
    ['an error_type that is no text', thrown(new Failing('Failed', 'x', { error_type: { a: 1 } }))],
    ['a retry with odd metadata', thrown(new Retrying({ a: 1 }, { error_type: 7, f: () => 1 }))],
    ['a retry with a number as its message', thrown(Object.assign(new Retrying('x'), { message: 7 }))],
    ['an error without a name', thrown(Object.assign(new Error('x'), { name: 7 }))],
    ['a wake with an odd mark', () => say({ content: 'x', follows: [{ ...WAKE, urgent: 'yes' }] })],
    ['a wake before all time', () => say({ content: 'x', follows: [{ ...WAKE, due: -1 }] })],
    ['a wake after all time', () => say({ content: 'x', follows: [{ ...WAKE, due: 1e300 }] })],
    ['an ok that is no flag', () => say({ ok: 'yes', content: 'x' })],
    ['a part that is none', () => say({ content: 'x', parts: [{ type: 'blob', hash: 'x' }, { type: 'status' }] })],
    ['a status of its own', () => say({ content: 'x', status: 'odd', metadata: { status: 'odd' } })],
  ])('B-KIND-1: %s: the session is exported, imported and archived', async (_, execute) => {
    const store = memory()
    expect(await writeResult(store, execute)).toBeDefined()
    await expectCopies(store)
  })

  it('B-KIND-2: an unknown kind is a failure of the kind Failed, whose message and error_type name it', async () => {
    const store = memory()
    const result = await writeResult(store, thrown(new Failing('Broken', 'The pump leaks.')), 'fail')
    expect(result).toMatchObject({
      status: 'error',
      content: 'Broken: The pump leaks.',
      failure: { kind: 'Failed', message: 'Broken: The pump leaks.' },
      metadata: { error_type: 'Broken' },
    })
    await expectCopies(store)
  })

  it.each([
    ['memory', () => memory()],
    ['sqlite', () => sqlite(makeFile())],
  ])('B-KIND-3: a log in %s with an unknown kind is read with the kind Failed, and copied', async (_, make) => {
    const store = make()
    await writeResult(withOldKinds(store), thrown(new ToolFailure('Failed', 'x')))
    expect(await readResult(store)).toMatchObject({ failure: { kind: 'Failed' } })
    await expectCopies(store)
    const { events } = await store.read('odd', 0)
    const archive = await archiveOf(store, 'odd')
    await removeArchived(store, archive, 'me')
    const [removal] = await store.removals(1)
    await restoreArchive(store, archive, removal?.by ?? null)
    expect((await store.read('odd', 0)).events).toEqual(events)
    await store.close()
  })

  it('B-KIND-4: a file of an earlier version with an unknown kind is imported with the kind Failed', async () => {
    const store = memory()
    await writeResult(store, thrown(new ToolFailure('Failed', 'x')))
    const today = await exportSession(store, 'odd')
    const file = forgeFile(today, (copy) => void (copy.events = copy.events.map(withOldKind)))
    const other = memory()
    await importSession(other, file)
    expect(await readResult(other)).toMatchObject({ failure: { kind: 'Failed' } })
    const changed = [...today.slice(0, -1), ...file.slice(-1)]
    await expect(importSession(memory(), changed)).rejects.toMatchObject({ code: 'invalid_input' })
  })
})

function withOldKind<One extends { readonly type: string }>(event: One): One {
  if (event.type !== 'agent.tool_result') return event
  return { ...event, failure: { kind: 'Broken', message: 'x' } }
}

/** Writes what earlier versions wrote. */
function withOldKinds(store: CompleteStore): CompleteStore {
  const commit: CompleteStore['commit'] = (writes) =>
    store.commit(
      writes.map((write) => ({ ...write, events: write.events.map(withOldKind) }) as unknown as typeof write),
    )
  return new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return commit
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
