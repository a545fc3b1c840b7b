// A graph whose nodes fail: what is tried again, what is kept, and how people go on: retry, edit, fork.
import { describe, expect, it } from 'vitest'
import { append, END, last, START, withState } from '../../src/graphs/index.ts'
import { moment } from './moment.ts'
import { eventsIn, failureIn, ofType, pointIn, runOf, STORAGES, storeOf, turnsOf, withGraphs } from './stage.ts'

const { node, graph } = withState({ topic: last(''), facts: append<string>(), draft: last<string>() })

/** Two nodes at once: `good` works, `bad` fails as often as it is told to. Then `write`. */
function shaky(fails: { left: number }, ran: string[], retries = 0) {
  return graph({
    name: 'shaky',
    nodes: {
      good: node({
        run: () => {
          ran.push('good')
          return { facts: ['good'] }
        },
      }),
      bad: node({
        reads: ({ topic }) => ({ topic }),
        retries,
        run: ({ topic }) => {
          ran.push(`bad ${topic}`)
          if (fails.left-- > 0) throw new Error('the line is dead')
          return { facts: [`bad ${topic}`] }
        },
      }),
      write: node({ reads: ({ facts }) => ({ facts }), run: ({ facts }) => ({ draft: facts.join(', ') }) }),
    },
    edges: [
      [START, 'good'],
      [START, 'bad'],
      [['good', 'bad'], 'write'],
      ['write', END],
    ],
  })
}

describe('a node that fails', () => {
  it('B-GRAPH-24: is called again as often as it may be, each time as a call of its own with the same arguments', async () => {
    const ran: string[] = []
    const { result, session } = await runOf(shaky({ left: 2 }, ran, 2), { topic: 'x' })
    expect(result).toMatchObject({ status: 'completed', output: { draft: 'good, bad x' } })
    expect(await turnsOf(session)).toEqual([['good', 'bad'], ['bad'], ['bad'], ['write'], []])
    expect(ran).toEqual(['good', 'bad x', 'bad x', 'bad x'])
  })

  it.each(STORAGES)(
    'B-GRAPH-25: that used up its retries ends the run with its error, and the session can go on: only it runs again (AC-91, %s)',
    async (storage) => {
      const ran: string[] = []
      const fails = { left: 2 }
      const store = storeOf(storage)
      const { result, session, harness } = await runOf(shaky(fails, ran, 1), { topic: 'x' }, { store })
      expect(result).toMatchObject({
        status: 'failed',
        stopReason: 'planner_failed',
        failure: { classified: { recoverable: false } },
      })
      expect(failureIn(result)).toBe('planner_failed: Node "bad" failed: Error: the line is dead')
      expect((await pointIn(session)).state).toMatchObject({ facts: [] })
      await harness.close()
      // Another process, later: what was done is in the log.
      const other = withGraphs([shaky(fails, ran, 1)], { store })
      expect(await other.session(session.id).run({ retry: true })).toMatchObject({
        status: 'completed',
        output: { draft: 'good, bad x' },
      })
      expect(ran).toEqual(['good', 'bad x', 'bad x', 'bad x'])
    },
  )

  it('B-GRAPH-26: an edit then runs it again over the edited state (AC-91)', async () => {
    const ran: string[] = []
    const { session } = await runOf(shaky({ left: 1 }, ran), { topic: 'wrong' })
    expect(await session.run({ edit: { topic: 'right', facts: ['mine'] } })).toMatchObject({
      status: 'completed',
      output: { topic: 'right', facts: ['mine', 'good', 'bad right'] },
    })
    expect(ran).toEqual(['good', 'bad wrong', 'bad right'])
  })

  it('B-GRAPH-27: a fork goes on apart from its source, with an edit of its own; the source is as it was (AC-91)', async () => {
    const ran: string[] = []
    const fails = { left: 1 }
    const { session } = await runOf(shaky(fails, ran), { topic: 'old' })
    const before = await eventsIn(session)
    const fork = await session.fork()
    expect(await fork.run({ edit: { topic: 'new' } })).toMatchObject({ output: { draft: 'good, bad new' } })
    expect(await eventsIn(session)).toEqual(before)
    expect(await session.run({ retry: true })).toMatchObject({ output: { draft: 'good, bad old' } })
    // At an earlier event: the calls that were open there are made again, over the edited state.
    const open = ofType(before, 'agent.message')[0]?.seq ?? 0
    const early = await session.fork({ at: open })
    expect(await early.run({ edit: { topic: 'early' } })).toMatchObject({ output: { draft: 'good, bad early' } })
    expect(ran).toEqual(['good', 'bad old', 'bad new', 'bad old', 'good', 'bad early'])
  })

  it('B-GRAPH-28: that was too slow is tried again like one that failed, unless it may run once only: then its outcome is unknown', async () => {
    for (const [effect, turns, status] of [
      ['read', [['slow'], ['slow'], []], 'timeout'],
      ['once', [['slow'], []], 'unknown'],
    ] as const) {
      let runs = 0
      const slow = node({
        effect,
        timeoutMs: 20,
        retries: 1,
        run: async (_args, { signal }) => {
          runs += 1
          if (runs === 1)
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('late'))))
          return { facts: ['in time'] }
        },
      })
      const made = graph({
        name: 'slow',
        nodes: { slow },
        edges: [
          [START, 'slow'],
          ['slow', END],
        ],
      })
      const { result, session } = await runOf(made)
      expect(await turnsOf(session)).toEqual(turns)
      expect(ofType(await eventsIn(session), 'agent.tool_result')[0]?.status).toBe(status)
      if (effect === 'read') expect(result).toMatchObject({ output: { facts: ['in time'] } })
      else expect(failureIn(result)).toContain('It may or may not have taken effect')
    }
  })

  it('B-GRAPH-29: reads that fail end the run before anything is called, and an edit helps', async () => {
    const made = graph({
      name: 'picky',
      nodes: {
        a: node({
          reads: ({ draft }) => ({ size: (draft as string).length }),
          run: ({ size }) => ({ facts: [`${size}`] }),
        }),
      },
      edges: [
        [START, 'a'],
        ['a', END],
      ],
    })
    const { result, session } = await runOf(made)
    expect(failureIn(result)).toContain('The arguments of node "a" could not be read from the state: TypeError')
    expect(await session.run({ edit: { draft: 'four' } })).toMatchObject({ output: { facts: ['4'] } })
  })
})

describe('what a node leaves behind', () => {
  it('B-GRAPH-53: a long result lives beside the log, and the next node still has the whole of it', async () => {
    const made = graph({
      name: 'long',
      nodes: {
        make: node({ effect: 'read', run: () => ({ draft: 'x'.repeat(150_000) }) }),
        count: node({
          effect: 'read',
          reads: ({ draft }) => ({ chars: draft?.length ?? 0 }),
          run: ({ chars }) => ({ facts: [`${chars}`], draft: '' }),
        }),
      },
      edges: [
        [START, 'make'],
        ['make', 'count'],
        ['count', END],
      ],
    })
    const { result, session } = await runOf(made, {}, { store: storeOf('sqlite') })
    expect(result).toMatchObject({ status: 'completed', output: { facts: ['150000'] } })
    expect(ofType(await eventsIn(session), 'agent.tool_result')[0]?.content).toMatchObject({ type: 'blob' })
  })

  it('B-GRAPH-54: a secret in the state is a mark in the log, and the graph goes on with the mark', async () => {
    const made = graph({
      name: 'secret',
      nodes: {
        make: node({ run: () => ({ draft: 'the key is hunter2hunter2 "quoted"' }) }),
        see: node({ reads: ({ draft }) => ({ draft }), run: ({ draft }) => ({ facts: [draft ?? ''] }) }),
      },
      edges: [
        [START, 'make'],
        ['make', 'see'],
        ['see', END],
      ],
    })
    const { result, session } = await runOf(made, {}, { secrets: { KEY: 'hunter2hunter2' } })
    expect(result).toMatchObject({ output: { facts: ['the key is ⟦secret:KEY⟧ "quoted"'] } })
    expect(JSON.stringify(await eventsIn(session))).not.toContain('hunter2')
  })
})

describe('what is said to a graph', () => {
  it('B-GRAPH-30: after a failure only a retry or an edit goes on; anything else is refused, and nothing is lost', async () => {
    const ran: string[] = []
    const { session } = await runOf(shaky({ left: 1 }, ran), { topic: 'x' })
    for (const [said, text] of [
      [{ topic: 'y' }, 'What was sent now was not taken in. Send {"retry": true} or {"edit": {…}} to go on.'],
      [{ retry: false }, 'InvalidMessage: "retry" can only be true.'],
      [{ edit: [1] }, 'InvalidMessage: "edit" must be an object'],
      [{ edit: { nothing: 1 } }, 'UnknownChannel: The edit has "nothing"'],
      [{ retry: true, topic: 'y' }, 'there can be no "topic"'],
      ['go on', 'InvalidMessage: graph "shaky" takes a JSON object'],
    ] as const) {
      expect(failureIn(await session.run(said as { topic: string }))).toContain(text)
    }
    expect(await session.run({ retry: true })).toMatchObject({ output: { topic: 'x', draft: 'good, bad x' } })
    expect(ran).toEqual(['good', 'bad x', 'bad x'])
  })

  it('B-GRAPH-31: while it works, changes the state at its next turn: edits as they are, inputs by the reducers', async () => {
    const [runs, go] = [moment(), moment()]
    const made = graph({
      name: 'steered',
      nodes: {
        first: node({
          run: async () => {
            runs.come()
            await go.here
            return { facts: ['first'] }
          },
        }),
        second: node({
          reads: ({ topic, facts }) => ({ said: `${topic}: ${facts.join()}` }),
          run: ({ said }) => ({ draft: said }),
        }),
      },
      edges: [
        [START, 'first'],
        ['first', 'second'],
        ['second', END],
      ],
    })
    const harness = withGraphs([made])
    const session = await harness.open({ agent: 'steered' })
    const running = session.run({ topic: 'old' })
    await runs.here
    await session.send({ edit: { topic: 'new' } })
    await session.send({ facts: ['said meanwhile'] })
    go.come()
    expect(await running).toMatchObject({ status: 'completed', output: { draft: 'new: said meanwhile,first' } })
  })

  it('B-GRAPH-32: after an interrupt, a retry runs what was stopped, and not what was done', async () => {
    const runs = moment()
    const ran: string[] = []
    const made = graph({
      name: 'stopped',
      nodes: {
        quick: node({
          run: () => {
            ran.push('quick')
            return { facts: ['quick'] }
          },
        }),
        long: node({
          effect: 'idempotent',
          run: async (_args, { signal }) => {
            ran.push('long')
            if (ran.filter((name) => name === 'long').length > 1) return { facts: ['long'] }
            runs.come()
            return new Promise<never>((_, reject) =>
              signal.addEventListener('abort', () => reject(new Error('stopped'))),
            )
          },
        }),
      },
      edges: [
        [START, 'quick'],
        [START, 'long'],
        ['quick', END],
        ['long', END],
      ],
    })
    const harness = withGraphs([made])
    const session = await harness.open({ agent: 'stopped' })
    const running = session.run({})
    await runs.here
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted' })
    expect(await session.run({ retry: true })).toMatchObject({
      status: 'completed',
      output: { facts: ['quick', 'long'] },
    })
    expect(ran).toEqual(['quick', 'long', 'long'])
  })
})
