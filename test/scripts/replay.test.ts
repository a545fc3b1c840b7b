// Cells that are run again over their recorded results, as another process would: each look makes a harness of its own.
import { expect, it } from 'vitest'
import { type CompleteStore, Harness, memory, scripted } from '../../src/index.ts'
import type { CellRequest } from '../../src/scripts/cell.ts'
import { scriptsWith } from '../../src/scripts/create-scripts.ts'
import { type CellRunner, startCellThread, type StartRunner } from '../../src/scripts/sandbox.ts'
import { decideAll, eventsOf, ofType, type Seen, testTools, withScripts, writer, type Step } from './stage.ts'

type Processes = { readonly store: CompleteStore; readonly seen: Seen; readonly steps: readonly Step[] }

/** A harness that knows nothing of the engines of the others. */
function anotherProcess({ store, seen, steps }: Processes, start: StartRunner = startCellThread) {
  const { tool, planner } = scriptsWith({ mode: 'on' }, start)
  const { model, told } = writer(steps)
  const tools = [...testTools(seen), tool]
  return {
    harness: new Harness({ model, store, secrets: {}, tools, graphs: [planner], worker: { graceMs: 50 } }),
    told,
  }
}

function processes(steps: readonly Step[]): Processes {
  return { store: memory(), seen: { made: [], most: 0 }, steps }
}

/** Notes what the engine was asked to run. */
function watched(ran: string[], broken: (request: CellRequest) => boolean = () => false): StartRunner {
  return async (clock) => {
    const runner: CellRunner = await startCellThread(clock)
    return {
      close: () => runner.close(),
      run: async (requests) => {
        for (const request of requests)
          ran.push(request.type === 'cell' ? `cell ${request.cell}` : `${request.results.length} results`)
        if (requests.some(broken)) runner.close()
        return runner.run(requests)
      },
    }
  }
}

it('B-CELL-3: a script that waits for an approval goes on in another process, and makes each call once (C3)', async () => {
  const script =
    'const text = await tool_call("read", { path: "a" })\nreturn [text, await tool_call("send", { to: text })]'
  const place = processes([{ script }])
  const one = anotherProcess(place)
  const { sessionId, status } = await one.harness.run('go')
  expect(status).toBe('requires_action')
  await one.harness.close()
  const ran: string[] = []
  const two = anotherProcess(place, watched(ran))
  expect(await decideAll(two.harness, sessionId)).toEqual(['send {"to":"read a"}'])
  expect(two.told.map((text) => JSON.parse(text) as object)).toMatchObject([{ value: ['read a', 'sent to read a'] }])
  await two.harness.close()
  expect(place.seen.made).toEqual(['read a', 'sent to read a'])
  expect(ran).toEqual(['cell 1', '1 results', '1 results'])
})

it('B-CELL-1: a cell in another process has the variables of those before it, and calls nothing again', async () => {
  const place = processes([
    { script: 'const list = [await tool_call("read", { path: "a" }), run.random()]' },
    { script: 'throw new Error("no")' },
    ([first]) => ({
      script: 'list.push(await tool_call("read", { path: "b" })); return list',
      session_id: first?.session_id ?? '',
    }),
    ([first]) => ({
      script: 'list.push(await tool_call("send", {})); return list',
      session_id: first?.session_id ?? '',
    }),
  ])
  const one = anotherProcess(place)
  const { sessionId } = await one.harness.run('go')
  const before = JSON.parse(one.told[2] ?? '') as { value: unknown[] }
  await one.harness.close()
  const two = anotherProcess(place)
  await decideAll(two.harness, sessionId)
  expect(JSON.parse(two.told[3] ?? '')).toMatchObject({ value: [...before.value, 'sent to all'] })
  expect(place.seen.made).toEqual(['read a', 'read b', 'sent to all'])
  await two.harness.close()
})

it('B-CELL-16: two chains of unequal depth make the same calls in the same order, wherever they are run again (C16)', async () => {
  const script = (tool: string, name: string): string => `const order = []
async function chain(letter, calls, depth) {
  for (let n = 0; n < calls; n++) {
    await tool_call('${tool}', { ${name}: letter + n })
    for (let i = 0; i < depth; i++) await null
    order.push(letter + n)
  }
}
await Promise.all([chain('a', 5, 1), chain('b', 5, 7)])
return order`
  const live = processes([{ script: script('read', 'path') }])
  const { harness, told } = anotherProcess(live)
  await harness.run('go')
  await harness.close()
  // Each of these calls waits for a person, and another process goes on after each batch of them.
  const place = processes([{ script: script('send', 'to') }])
  let now = anotherProcess(place)
  const { sessionId } = await now.harness.run('go')
  for (let batch = 0; batch < 5; batch++) {
    for (const { callId, sessionId: cell } of await now.harness.pending())
      await now.harness.session(cell).decide({ callId, allow: true, by: 'ann' })
    await now.harness.close()
    now = anotherProcess(place)
    await now.harness.session(sessionId).run()
  }
  await now.harness.close()
  const expected = JSON.parse(told[0] ?? '') as object
  expect(JSON.parse(now.told[0] ?? '')).toMatchObject({ value: (expected as { value: unknown }).value })
  const order = (seen: Seen): readonly (string | undefined)[] => seen.made.map((text) => text.split(' ').at(-1))
  expect(order(place.seen)).toEqual(order(live.seen))
})

it('B-CELL-18: a thread that ends in the middle of a cell is replaced, and nothing is called twice (C18)', async () => {
  const script =
    'const all = []\nfor (const path of ["a", "b", "c"]) all.push(await tool_call("read", { path }))\nreturn all'
  const place = processes([{ script }])
  const ran: string[] = []
  let breaks = 2
  const { harness, told } = anotherProcess(
    place,
    watched(ran, ({ type }) => type === 'results' && ran.length === 3 && breaks-- > 0),
  )
  await harness.run('go')
  await harness.close()
  expect(JSON.parse(told[0] ?? '')).toMatchObject({ value: ['read a', 'read b', 'read c'] })
  expect(place.seen.made).toEqual(['read a', 'read b', 'read c'])
  expect(ran).toEqual(['cell 1', '1 results', '1 results', 'cell 1', '1 results', '1 results', '1 results'])
})

it('B-CELL-18: a cell whose thread ends twice at one place has failed, and says so', async () => {
  const place = processes([{ script: 'await tool_call("read", { path: "a" })' }])
  const { harness, told } = anotherProcess(
    place,
    watched([], ({ type }) => type === 'results'),
  )
  expect(await harness.run('go')).toMatchObject({ status: 'completed' })
  await harness.close()
  expect(told[0]).toContain('The thread of the script was lost 2 times')
})

it('B-CELL-20: a recorded call that the program does not make now ends the cell, with the place and both calls', async () => {
  const script = 'const path = "a"\nawait tool_call("read", { path })\nawait tool_call("send", { to: path })'
  const place = processes([{ script }])
  const one = anotherProcess(place)
  const { sessionId } = await one.harness.run('go')
  await one.harness.close()
  // An engine that goes another way than the log says, as one of another version could.
  const other: StartRunner = async (clock) => {
    const runner = await startCellThread(clock)
    const changed = (request: CellRequest): CellRequest =>
      request.type === 'cell' ? { ...request, code: request.code.replace('"a"', '"b"') } : request
    return { close: () => runner.close(), run: (requests) => runner.run(requests.map(changed)) }
  }
  const two = anotherProcess(place, other)
  await decideAll(two.harness, sessionId)
  const said = 'call 0 of read with {"path":"a"}, and now makes call 0 of read with {"path":"b"}'
  expect(two.told[0]).toContain(
    `ScriptDiverged: cell 1, line 2 does something else than the log says: it had made ${said}.`,
  )
  const cell = await eventsOf(two.harness, `${sessionId}~5.0`)
  const [end] = ofType(cell, 'run.settled')
  expect(end?.outcome).toMatchObject({ type: 'failed', reason: 'planner_failed' })
  await two.harness.close()
  expect(place.seen.made).toEqual(['read a', 'sent to a'])
})

it('B-CELL-30: a harness without scripts has no planner of this name', async () => {
  const harness = new Harness({ model: scripted(['done']), secrets: {} })
  await expect(harness.run('answer(1)', { agent: 'script' as 'default' })).rejects.toMatchObject({
    code: 'invalid_config',
  })
  await harness.close()
  const { harness: own } = withScripts([])
  expect(await own.run('return 6 * 7', { agent: 'script' })).toMatchObject({
    status: 'completed',
    output: { value: 42 },
  })
})
