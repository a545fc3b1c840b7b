// How a graph ends when it does not come to its end: the finalizer after a stop, and what undoes a failed run.
import { describe, expect, it } from 'vitest'
import { END, last, append, START, toJson, toMermaid, withState } from '../../src/graphs/index.ts'
import { type Clock, memory } from '../../src/index.ts'
import { moment } from './moment.ts'
import { eventsIn, failureIn, ofType, runOf, STORAGES, storeOf, turnsOf, withGraphs } from './stage.ts'

const { node, question, graph } = withState({ facts: append<string>(), word: last('') })

type Last = { readonly run?: () => { word: string } | Promise<{ word: string }>; readonly finalizer?: boolean }

/** One node that is done, one that hangs until it is stopped, and a node that has the last word. */
function stopped({ run = () => ({ word: 'so far' }), finalizer = true }: Last = {}) {
  const hangs = moment()
  const made = graph({
    name: 'work',
    nodes: {
      look: node({ effect: 'read', run: () => ({ facts: ['looked'] }) }),
      wait: node({
        run: async (_args, { signal }) => {
          hangs.come()
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
        },
      }),
      sum: node({ effect: 'read', reads: ({ facts }) => ({ facts }), run: async () => ({ ...(await run()) }) }),
    },
    edges: [
      [START, 'look'],
      ['look', 'wait'],
      ['wait', 'sum'],
      ['sum', END],
    ],
    ...(finalizer ? { onInterrupt: 'sum' as const } : {}),
  })
  return { made, hangs }
}

describe('onInterrupt', () => {
  it.each(STORAGES)(
    'B-GRAPH-61: after a stop the finalizer runs over the last whole state, and its state is the output of the interrupted run (%s)',
    async (storage) => {
      const { made, hangs } = stopped()
      const harness = withGraphs([made], { store: storeOf(storage) })
      const session = await harness.open({ agent: 'work' })
      const running = session.run({})
      await hangs.here
      await session.interrupt()
      const result = await running
      const output = { facts: ['looked'], word: 'so far' }
      expect(result).toMatchObject({ status: 'interrupted', stopReason: 'cancelled', output })
      expect(JSON.parse(result.text)).toEqual(output)
      const events = await eventsIn(session)
      const [settled] = ofType(events, 'run.settled')
      expect(settled).toMatchObject({ outcome: { type: 'interrupted' }, output })
      // B-END-1: the intent is in the log before anything of the end is done.
      expect(events.slice(-2).map(({ type }) => type)).toEqual(['run.ending', 'run.settled'])
      // Read again, it is the same; and what was stopped can still be run.
      expect(await session.run()).toMatchObject({ status: 'interrupted', output })
      expect((await turnsOf(session)).flat()).toEqual(['look', 'wait'])
    },
  )

  it('B-END-6: a process that is told to stop while a run ends leaves it ending, and the next one goes on', async () => {
    const finalizing = moment()
    let stuck = true
    const run = async () => {
      finalizing.come()
      if (stuck) await new Promise(() => {})
      return { word: 'so far' }
    }
    const { made, hangs } = stopped({ run })
    const store = memory()
    const first = withGraphs([made], { store })
    const session = await first.open({ agent: 'work' })
    await session.send({ facts: ['given'] })
    await hangs.here
    await session.interrupt()
    await finalizing.here
    await first.close()
    stuck = false
    const second = withGraphs([made], { store }).session(session.id)
    expect(await second.run()).toMatchObject({ status: 'interrupted', output: { word: 'so far' } })
    const ends = (await eventsIn(second)).map(({ type }) => type).slice(-3)
    expect(ends).toEqual(['run.ending', 'run.ending', 'run.settled'])
  })

  it('B-GRAPH-61: input that was stopped before its run began ends without the finalizer', async () => {
    const { made } = stopped()
    const store = memory()
    const idle = withGraphs([made], { store, worker: { drives: false } })
    const session = await idle.open({ agent: 'work' })
    await session.send({ facts: ['given'] })
    await session.interrupt()
    const worker = withGraphs([made], { store })
    const result = await worker.session(session.id).run()
    expect(result.status).toBe('interrupted')
    expect('output' in result).toBe(false)
    expect(ofType(await eventsIn(session), 'run.ending')).toEqual([])
  })

  it('B-GRAPH-62: a graph without a finalizer ends as it did, and so does one whose finalizer fails', async () => {
    const broken = (): never => {
      throw new Error('No words left.')
    }
    for (const { made, hangs } of [stopped({ finalizer: false }), stopped({ run: broken })]) {
      const session = await withGraphs([made]).open({ agent: 'work' })
      const running = session.run({})
      await hangs.here
      await session.interrupt()
      const result = await running
      expect(result.status).toBe('interrupted')
      expect('output' in result).toBe(false)
      const [settled] = ofType(await eventsIn(session), 'run.settled')
      expect(settled).not.toHaveProperty('output')
    }
  })

  it('B-GRAPH-63: a finalizer must be a node that reads and is not asked about, and rules hold for it', async () => {
    const one = (onInterrupt: string, effect: 'read' | 'once', approval: 'auto' | 'ask' = 'auto') =>
      graph({
        name: 'g',
        nodes: { a: node({ effect, approval, run: () => ({}) }), q: question({ reads: () => ({}), take: () => ({}) }) },
        edges: [
          [START, 'a'],
          ['a', 'q'],
          ['q', END],
        ],
        onInterrupt: onInterrupt as 'a',
      })
    expect(() => one('nobody', 'read')).toThrow('InvalidFinalizer')
    expect(() => one('a', 'once')).toThrow("must be a node(…) with effect: 'read'")
    expect(() => one('a', 'read', 'ask')).toThrow('InvalidFinalizer')
    expect(() => one('q', 'read')).toThrow('InvalidFinalizer')
    expect(toJson(one('a', 'read'))).toMatchObject({ onInterrupt: 'a' })
    const { made, hangs } = stopped()
    const policy = { rules: [{ tool: 'sum', effect: 'deny' as const, reason: 'no' }] }
    const session = await withGraphs([made], { approvals: { policy } }).open({ agent: 'work' })
    const running = session.run({})
    await hangs.here
    await session.interrupt()
    expect('output' in (await running)).toBe(false)
  })

  it('B-GRAPH-62: a finalizer has 10 s, and a run whose finalizer takes longer ends without output', async () => {
    const { made, hangs } = stopped({ run: () => new Promise(() => {}) })
    const waits: number[] = []
    // Ten seconds pass at once.
    const clock: Clock = {
      now: () => Date.now(),
      timer: (ms, then) => {
        if (ms === 10_000) waits.push(ms)
        const timer = setTimeout(then, ms === 10_000 ? 1 : ms)
        return () => clearTimeout(timer)
      },
    }
    const session = await withGraphs([made], { system: { clock }, worker: { graceMs: 50, leaseMs: 60_000 } }).open({
      agent: 'work',
    })
    const running = session.run({})
    await hangs.here
    await session.interrupt()
    const result = await running
    expect(result.status).toBe('interrupted')
    expect('output' in result).toBe(false)
    expect(waits).toHaveLength(1)
  })

  it('B-GRAPH-61: a secret that a finalizer says is a mark in the log', async () => {
    const { made, hangs } = stopped({ run: () => ({ word: 'the key is s3cr3t-value' }) })
    const session = await withGraphs([made], { secrets: { KEY: 's3cr3t-value' } }).open({ agent: 'work' })
    const running = session.run({})
    await hangs.here
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted' })
    expect(JSON.stringify(await eventsIn(session))).not.toContain('s3cr3t-value')
  })
})

type Journal = string[]
type Saga = { readonly fails?: boolean; readonly approval?: 'auto' | 'ask'; readonly broken?: boolean }

/** Three nodes that act, two of which can be undone, and a fourth that fails. */
function saga(journal: Journal, { fails = true, approval = 'auto', broken = false }: Saga = {}) {
  const act = (name: string) =>
    node({
      run: () => {
        journal.push(name)
        return { facts: [name] }
      },
    })
  return graph({
    name: 'saga',
    nodes: {
      book: act('book'),
      note: act('note'),
      pay: act('pay'),
      send: node({
        run: () => {
          if (fails) throw new Error('No post today.')
        },
      }),
      unbook: node({
        approval,
        run: ({ wrote }: { readonly args: object; readonly wrote: { readonly facts: readonly string[] } }) => {
          if (broken) throw new Error('The desk is closed.')
          journal.push(`undo ${wrote.facts.join()}`)
        },
      }),
      refund: node({
        run: ({ wrote }: { readonly wrote: { readonly facts: readonly string[] } }) =>
          void journal.push(`undo ${wrote.facts.join()}`),
      }),
    },
    edges: [
      [START, 'book'],
      ['book', 'note'],
      ['note', 'pay'],
      ['pay', 'send'],
      ['send', END],
    ],
    onFailure: { book: 'unbook', pay: 'refund' },
  })
}

it.each(STORAGES)(
  'B-SPAWN-64: a detached graph that a person stops reports what its finalizer came to (%s)',
  async (storage) => {
    const { made, hangs } = stopped()
    const store = storeOf(storage)
    const harness = withGraphs([{ ...made, description: 'works' }], { store, subagents: true, detached: true })
    const session = await harness.open()
    const { sessionId } = await session.spawn('work', '{}')
    await hangs.here
    await harness.session(sessionId).interrupt()
    await expect.poll(async () => ofType(await eventsIn(session), 'user.message').length).toBe(1)
    const [report] = ofType(await eventsIn(session), 'user.message')
    const [part] = report?.parts ?? []
    const text = part?.type === 'text' ? part.text : ''
    expect(text).toMatch(/^<subagent_report agent="work" [^\n]*\nThe subagent did not finish: it was interrupted\n/)
    expect(text).toContain('"word":"so far"')
    expect(text.match(/Its record is session/g)).toHaveLength(1)
    expect(text.endsWith('\n</subagent_report>')).toBe(true)
  },
)

describe('onFailure', () => {
  it('B-GRAPH-64: three nodes done and the fourth failed: those with a compensation are undone in reverse order, each once, and the run fails with the first reason (E16)', async () => {
    const journal: Journal = []
    const { result, session } = await runOf(saga(journal))
    expect(journal).toEqual(['book', 'note', 'pay', 'undo pay', 'undo book'])
    expect(failureIn(result)).toBe('planner_failed: Node "send" failed: Error: No post today. Undone: pay, book.')
    expect(await turnsOf(session)).toEqual([['book'], ['note'], ['pay'], ['send'], ['refund'], ['unbook'], []])
    // What was undone is not gone on with; a new input begins anew.
    expect(failureIn(await session.run({ retry: true }))).toContain('NothingToRetry')
    expect(journal).toHaveLength(5)
    await session.run({})
    expect(journal.slice(5)).toEqual(['book', 'note', 'pay', 'undo pay', 'undo book'])
  })

  it('B-GRAPH-64: a run that does not fail undoes nothing, and neither does a message that cannot be used', async () => {
    const journal: Journal = []
    const { result } = await runOf(saga(journal, { fails: false }))
    expect(result.status).toBe('completed')
    expect(journal).toEqual(['book', 'note', 'pay'])
  })

  it('B-GRAPH-65: a compensation is a call of its own: it is asked about, a no leaves what was done and says so, and one that fails stops none of the others', async () => {
    const journal: Journal = []
    const harness = withGraphs([saga(journal, { approval: 'ask' })])
    const parked = await harness.run({}, { agent: 'saga' })
    expect(parked.pending[0]).toMatchObject({ tool: 'unbook', args: { args: {}, wrote: { facts: ['book'] } } })
    expect(journal.at(-1)).toBe('undo pay')
    const session = harness.session(parked.sessionId)
    if (parked.pending[0]) await session.decide({ ...parked.pending[0], allow: false, by: 'ana' })
    const result = await session.run()
    expect(failureIn(result)).toContain('Undone: pay. Node book was not undone:')
    const other: Journal = []
    const { result: failed } = await runOf(saga(other, { broken: true }))
    expect(failureIn(failed)).toContain('Undone: pay. Node book was not undone: Error: The desk is closed.')
  })

  it('B-GRAPH-74: a compensation that a stop kept from ending is done when the session goes on, and then the others', async () => {
    const journal: Journal = []
    const hangs = moment()
    let hung = false
    const made = graph({
      name: 'halfway',
      nodes: {
        book: node({ run: () => ({ facts: ['book'] }) }),
        pay: node({ run: () => ({ facts: ['pay'] }) }),
        send: node({
          run: () => {
            throw new Error('No post today.')
          },
        }),
        unbook: node({ run: () => void journal.push('undo book') }),
        refund: node({
          effect: 'idempotent',
          run: async (_args, { signal }) => {
            if (hung) return void journal.push('undo pay')
            hung = true
            hangs.come()
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
          },
        }),
      },
      edges: [
        [START, 'book'],
        ['book', 'pay'],
        ['pay', 'send'],
        ['send', END],
      ],
      onFailure: { book: 'unbook', pay: 'refund' },
    })
    const session = await withGraphs([made]).open({ agent: 'halfway' })
    const running = session.run({})
    await hangs.here
    await session.interrupt()
    expect((await running).status).toBe('interrupted')
    expect(journal).toEqual([])
    expect(failureIn(await session.run({ retry: true }))).toContain('No post today. Undone: pay, book.')
    expect(journal).toEqual(['undo pay', 'undo book'])
  })

  it('B-GRAPH-73: a call whose effect is not known is not undone by itself: a person is asked first, whatever rules allow', async () => {
    const journal: Journal = []
    const made = graph({
      name: 'slow',
      nodes: {
        pay: node({ timeoutMs: 20, run: () => new Promise<never>(() => {}) }),
        refund: node({ run: (done) => void journal.push(JSON.stringify(done)) }),
      },
      edges: [
        [START, 'pay'],
        ['pay', END],
      ],
      onFailure: { pay: 'refund' },
    })
    const policy = { rules: [{ tool: 'refund', effect: 'allow' as const }] }
    const harness = withGraphs([made], { approvals: { policy } })
    const parked = await harness.run({}, { agent: 'slow' })
    expect(parked.pending[0]).toMatchObject({ tool: 'refund', args: { args: {}, unknown: true } })
    expect(journal).toEqual([])
    const session = harness.session(parked.sessionId)
    if (parked.pending[0]) await session.decide({ ...parked.pending[0], allow: true, by: 'ana' })
    expect(failureIn(await session.run())).toContain('Undone: pay.')
    expect(journal).toEqual(['{"args":{},"unknown":true}'])
  })

  it('B-GRAPH-64: calls of one superstep are undone too when another of it fails, and each item of a map', async () => {
    const journal: Journal = []
    const made = withState({ facts: append<string>() })
    const wide = made.graph({
      name: 'wide',
      nodes: {
        each: made.mapNode({
          over: () => ['a', 'b'],
          run: (item) => item,
          take: (results) => ({ facts: results.flatMap((result) => (result.ok ? [result.value] : [])) }),
        }),
        bad: made.node({
          run: () => {
            throw new Error('No.')
          },
        }),
        back: made.node({ run: ({ wrote }: { readonly wrote: string }) => void journal.push(wrote) }),
      },
      edges: [
        [START, 'each'],
        [START, 'bad'],
        [['each', 'bad'], END],
      ],
      onFailure: { each: 'back' },
    })
    const { result } = await runOf(wide)
    expect(failureIn(result)).toContain('Undone: each, each.')
    expect(journal).toEqual(['b', 'a'])
  })

  it('B-GRAPH-66: with true a node is undone by its own undo, by what it wrote, and session.undo knows it too', async () => {
    const journal: Journal = []
    const made = (fails: boolean) =>
      graph({
        name: 'own',
        nodes: {
          write: node({
            run: () => ({ word: 'written' }),
            undo: async (wrote) => {
              journal.push(`undo ${JSON.stringify(wrote)}`)
              return [{ what: 'word', result: 'restored' as const }]
            },
          }),
          end: node({
            run: () => {
              if (fails) throw new Error('No.')
            },
          }),
        },
        edges: [
          [START, 'write'],
          ['write', 'end'],
          ['end', END],
        ],
        onFailure: { write: true },
      })
    const { result, session } = await runOf(made(true))
    expect(failureIn(result)).toContain('Undone: write.')
    expect((await turnsOf(session)).flat()).toEqual(['write', 'end', 'undo_write'])
    const fine = await runOf(made(false))
    expect(await fine.session.undo()).toMatchObject([{ what: 'word', result: 'restored' }])
    expect(journal).toEqual(['undo {"word":"written"}', 'undo {"word":"written"}'])
  })

  it('B-GRAPH-67: a compensation that cannot be is refused when the graph is made, and the drawing shows what undoes what', () => {
    const bad = (onFailure: object) => () =>
      graph({
        name: 'g',
        nodes: { a: node({ run: () => ({}) }), q: question({ reads: () => ({}), take: () => ({}) }) },
        edges: [
          [START, 'a'],
          ['a', 'q'],
          ['q', END],
        ],
        onFailure,
      })
    expect(bad({ nobody: 'a' })).toThrow('InvalidCompensation: in graph "g" onFailure names "nobody"')
    expect(bad({ a: 'a' })).toThrow('must be another node')
    expect(bad({ a: 'q' })).toThrow('must be another node')
    expect(bad({ a: true })).toThrow('by its own undo, and has none')
    expect(toMermaid(saga([]))).toContain('n1 -. failed .-> n5')
    expect(toJson(saga([]))).toMatchObject({ onFailure: { book: 'unbook', pay: 'refund' } })
  })
})
