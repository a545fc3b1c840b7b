// A graph that waits for an approval, an answer or a child. It holds no process meanwhile, and continuing it repeats nothing.
import { describe, expect, it } from 'vitest'
import type { SessionHandle, CompleteStore } from '../../src/index.ts'
import { scripted } from '../../src/index.ts'
import { append, command, END, type Graph, last, START, send, withState } from '../../src/graphs/index.ts'
import { eventsIn, failureIn, ofType, pointIn, runOf, STORAGES, storeOf, turnsOf, withGraphs } from './stage.ts'

const { node, question, agentNode, graph } = withState({
  topic: last(''),
  facts: append<string>(),
  draft: last<string>(),
})

const says = (fact: string) => node({ effect: 'read', run: () => ({ facts: [fact] }) })

/** Another harness on the same store, as another process would have it. */
function elsewhere(graphs: readonly Graph[], store: CompleteStore, id: string): SessionHandle {
  return withGraphs(graphs, { store }).session(id)
}

describe('a node that must be allowed', () => {
  const gated = (written: string[]) =>
    graph({
      name: 'gated',
      nodes: {
        draft: node({ reads: ({ topic }) => ({ topic }), run: ({ topic }) => ({ draft: `All about ${topic}.` }) }),
        publish: node({
          reads: ({ draft }) => ({ path: 'report.md', text: draft ?? '' }),
          approval: 'ask',
          retries: 3,
          run: ({ path, text }) => {
            written.push(`${path}: ${text}`)
            return { facts: ['published'] }
          },
        }),
      },
      edges: [
        [START, 'draft'],
        ['draft', 'publish'],
        ['publish', END],
      ],
    })

  it.each(STORAGES)(
    'B-GRAPH-33: is shown with exactly the arguments it will run with, and runs in another process (AC-91, %s)',
    async (storage) => {
      const written: string[] = []
      const store = storeOf(storage)
      const { result, session, harness } = await runOf(gated(written), { topic: 'rain' }, { store })
      expect(result).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
      const [pending] = result.pending
      expect(pending).toMatchObject({
        tool: 'publish',
        needs: 'approval',
        args: { path: 'report.md', text: 'All about rain.' },
      })
      await harness.close()
      const other = elsewhere([gated(written)], store, session.id)
      await other.decide({ callId: pending?.callId ?? '', digest: pending?.digest ?? '', allow: true, by: 'ana' })
      expect(await other.run()).toMatchObject({ status: 'completed', output: { facts: ['published'] } })
      expect(written).toEqual(['report.md: All about rain.'])
      expect(await turnsOf(other)).toEqual([['draft'], ['publish'], []])
    },
  )

  it('B-GRAPH-34: and is not, ends the run; the question is not asked again until a retry or an edit', async () => {
    const written: string[] = []
    const { result, session } = await runOf(gated(written), { topic: 'rain' })
    await session.decide({ callId: result.pending[0]?.callId ?? '', allow: false, by: 'ana', why: 'too short' })
    const denied = await session.run()
    expect(failureIn(denied)).toContain(
      'Node "publish" failed: Tool call was rejected by a human reviewer.\nReason: too short',
    )
    expect(await turnsOf(session)).toEqual([['draft'], ['publish'], []])
    const again = await session.run({ edit: { draft: 'Much longer.' } })
    expect(again.pending).toMatchObject([{ args: { text: 'Much longer.' } }])
    await session.decide({ callId: again.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
    expect(written).toEqual(['report.md: Much longer.'])
  })

  it('B-GRAPH-35: rules of the harness hold for nodes too: what they deny is recorded, and ends the run', async () => {
    const written: string[] = []
    const policy = { rules: [{ tool: 'publish', effect: 'deny' as const }] }
    const { result, session } = await runOf(gated(written), { topic: 'rain' }, { approvals: { policy } })
    expect(failureIn(result)).toContain('Node "publish" failed:')
    expect(ofType(await eventsIn(session), 'agent.tool_result').at(-1)).toMatchObject({
      status: 'denied',
      failure: { kind: 'Denied' },
    })
    expect(written).toEqual([])
  })
})

describe('a question', () => {
  const asking = (ran: string[]) =>
    graph({
      name: 'asking',
      nodes: {
        plan: node({
          run: () => {
            ran.push('plan')
            return { facts: ['planned'] }
          },
        }),
        ask: question({
          reads: ({ topic }) => ({ question: `Which style for ${topic}?`, choices: ['long', 'short'] }),
          to: ['write', 'plan'],
          take: (answer) => {
            if (!['long', 'short', 'again'].includes(answer)) throw new Error(`"${answer}" is no style`)
            return answer === 'again'
              ? command({ goto: 'plan' })
              : command({ update: { draft: answer }, goto: 'write' })
          },
        }),
        write: node({ reads: ({ draft }) => ({ draft }), run: ({ draft }) => ({ facts: [`wrote ${draft}`] }) }),
      },
      edges: [
        [START, 'plan'],
        ['plan', 'ask'],
        ['write', END],
      ],
    })

  it.each(STORAGES)(
    'B-GRAPH-36: parks the run until it is answered, from any process; nothing that was done runs again (AC-91, %s)',
    async (storage) => {
      const ran: string[] = []
      const store = storeOf(storage)
      const { result, session, harness } = await runOf(asking(ran), { topic: 'rain' }, { store })
      expect(result).toMatchObject({ status: 'requires_action', stopReason: 'answer_required' })
      expect(result.pending).toMatchObject([
        { tool: 'ask', needs: 'answer', args: { question: 'Which style for rain?' } },
      ])
      await harness.close()
      const other = elsewhere([asking(ran)], store, session.id)
      await other.answer({ callId: result.pending[0]?.callId ?? '', content: 'short' })
      expect(await other.run()).toMatchObject({
        status: 'completed',
        output: { facts: ['planned', 'wrote short'], draft: 'short' },
      })
      expect(ran).toEqual(['plan'])
    },
  )

  it('B-GRAPH-37: nothing must be set up to wait; an answer may send the graph back, and one that makes no sense is asked for again', async () => {
    const ran: string[] = []
    const { result, session } = await runOf(asking(ran), { topic: 'rain' })
    const reply = async (content: string, pending = result.pending) => {
      await session.answer({ callId: pending[0]?.callId ?? '', content })
      return session.run()
    }
    const back = await reply('again')
    expect(ran).toEqual(['plan', 'plan'])
    const odd = await reply('purple', back.pending)
    expect(failureIn(odd)).toContain('Node "ask" failed: Error: "purple" is no style')
    const asked = await session.run({ retry: true })
    expect(await reply('long', asked.pending)).toMatchObject({ status: 'completed', output: { draft: 'long' } })
    expect(ran).toEqual(['plan', 'plan'])
  })

  it.each(STORAGES)(
    'B-GRAPH-38: what branches were sent and which of them arrived at a join survive the wait and the process (AC-91, %s)',
    async (storage) => {
      const made = () =>
        graph({
          name: 'kept',
          nodes: {
            split: says('split'),
            left: says('left'),
            branch: question({ reads: () => ({ question: 'never read' }), take: (answer) => ({ facts: [answer] }) }),
            join: node({ reads: ({ facts }) => ({ facts }), run: ({ facts }) => ({ draft: facts.join() }) }),
          },
          edges: [
            [START, 'split'],
            [START, 'left'],
            {
              from: 'split',
              to: ['branch'],
              by: () => [send('branch', { question: 'A?', n: 1 }), send('branch', { question: 'B?', n: 2 })],
            },
            [['left', 'branch'], 'join'],
            ['join', END],
          ],
        })
      const store = storeOf(storage)
      const { result, session, harness } = await runOf(made(), {}, { store })
      expect(result.pending.map(({ args }) => args)).toEqual([
        { question: 'A?', n: 1 },
        { question: 'B?', n: 2 },
      ])
      expect(await pointIn(session)).toMatchObject({ arrived: { 'left+branch > join': ['left'] } })
      await harness.close()
      const other = elsewhere([made()], store, session.id)
      // Answered in the other order: the state is in the order of the calls.
      await other.answer({ callId: result.pending[1]?.callId ?? '', content: 'b' })
      await other.answer({ callId: result.pending[0]?.callId ?? '', content: 'a' })
      expect(await other.run()).toMatchObject({ status: 'completed', output: { draft: 'split,left,a,b' } })
      // A branch that fails is called again with what it was sent.
      const second = await runOf(made(), {}, { store: storeOf(storage) })
      await second.session.answer({ callId: second.result.pending[0]?.callId ?? '', content: 'a' })
      await second.session.answer({ callId: second.result.pending[1]?.callId ?? '', content: 'no', ok: false })
      expect(failureIn(await second.session.run())).toContain('Node "branch" failed: no')
      const retried = await second.session.run({ retry: true })
      expect(retried.pending.map(({ args }) => args)).toEqual([{ question: 'B?', n: 2 }])
      await second.session.answer({ callId: retried.pending[0]?.callId ?? '', content: 'b' })
      expect(await second.session.run()).toMatchObject({ output: { draft: 'split,left,a,b' } })
    },
  )
})

describe('children', () => {
  const delegating = () =>
    graph({
      name: 'delegating',
      nodes: {
        write: agentNode({
          agent: 'writer',
          task: ({ topic }) => `Write about ${topic}.`,
          take: (draft) => ({ draft }),
        }),
        check: agentNode({
          agent: 'checker',
          task: ({ draft }) => JSON.stringify({ topic: draft }),
          take: (answer) => ({ facts: [answer] }),
        }),
      },
      edges: [
        [START, 'write'],
        ['write', 'check'],
        ['check', END],
      ],
    })
  const checker = () =>
    graph({
      name: 'checker',
      description: 'checks a draft',
      nodes: {
        ask: question({
          reads: ({ topic }) => ({ question: `Is this good? ${topic}` }),
          take: (answer) => ({ draft: answer }),
        }),
      },
      edges: [
        [START, 'ask'],
        ['ask', END],
      ],
    })
  const writer = {
    description: 'writes',
    model: scripted((request) => `DRAFT (${JSON.stringify(request.messages).includes('rain')})`),
  }

  it.each(STORAGES)(
    'B-GRAPH-39: a node may be a child session, of an agent or of another graph; a question below is answered at the top (%s)',
    async (storage) => {
      const store = storeOf(storage)
      const harness = withGraphs([delegating(), checker()], { store, subagents: { writer } })
      const result = await harness.run({ topic: 'rain' }, { agent: 'delegating' })
      expect(result).toMatchObject({ status: 'requires_action', stopReason: 'answer_required' })
      const [pending] = result.pending
      expect(pending).toMatchObject({ tool: 'ask', args: { question: 'Is this good? DRAFT (true)' } })
      expect(pending?.path).toHaveLength(2)
      await harness.close()
      const other = withGraphs([delegating(), checker()], { store, subagents: { writer } }).session(result.sessionId)
      await other.answer({ callId: pending?.callId ?? '', sessionId: pending?.sessionId ?? '', content: 'very' })
      const done = await other.run()
      expect(done).toMatchObject({ status: 'completed', output: { draft: 'DRAFT (true)' } })
      expect(done.status === 'completed' && JSON.stringify(done.output)).toContain('\\"draft\\":\\"very\\"')
      expect(await turnsOf(other)).toEqual([['write'], ['check'], []])
    },
  )

  it('B-CHILD-54: a graph gets the whole answer of its child, and of one that is too long it is told what to do', async () => {
    const long = (chars: number) =>
      graph({
        name: 'long',
        description: 'has a long state',
        nodes: { one: says('"\n'.repeat(chars / 4)), two: says('x'.repeat(chars / 2)) },
        edges: [
          [START, 'one'],
          ['one', 'two'],
          ['two', END],
        ],
      })
    const parent = graph({
      name: 'parent',
      nodes: {
        ask: agentNode({
          agent: 'long',
          task: () => '{}',
          take: (answer) => ({ draft: `${(JSON.parse(answer) as { facts: string[] }).facts.join('').length}` }),
        }),
      },
      edges: [
        [START, 'ask'],
        ['ask', END],
      ],
    })
    const whole = await withGraphs([parent, long(60_000)]).run({}, { agent: 'parent' })
    expect(whole).toMatchObject({ status: 'completed', output: { draft: '60000' } })
    const much = await withGraphs([parent, long(180_000)]).run({}, { agent: 'parent' })
    expect(failureIn(much)).toMatch(/Node "ask" failed: The answer of session \S+ has \d+ characters, .*context\.keep/)
  })

  it('B-CHILD-54: a long text of an agent is not cut for a graph either', async () => {
    const long = 'x'.repeat(50_000)
    const harness = withGraphs([delegating(), checker()], {
      subagents: { writer: { ...writer, model: scripted([long]) } },
    })
    const { pending } = await harness.run({ topic: 'rain' }, { agent: 'delegating' })
    expect(JSON.stringify(pending[0]?.args)).toContain(long)
  })

  it('B-GRAPH-40: a child that fails is a node that failed; a model may start a graph that says what it is for', async () => {
    const broken = { description: 'writes', model: scripted([{ error: 'bad_request', message: 'no such model' }]) }
    const harness = withGraphs([delegating(), checker()], { subagents: { writer: broken } })
    expect(failureIn(await harness.run({ topic: 'rain' }, { agent: 'delegating' }))).toContain(
      'Node "write" failed: The subagent did not finish',
    )
    // Tried again, it is a new child.
    const patient = graph({
      name: 'patient',
      nodes: { write: agentNode({ agent: 'writer', task: () => 'Write.', take: (draft) => ({ draft }), retries: 1 }) },
      edges: [
        [START, 'write'],
        ['write', END],
      ],
    })
    const late = { description: 'writes', model: scripted([{ error: 'bad_request', message: 'not now' }, 'A draft.']) }
    const twice = await runOf(patient, {}, { subagents: { writer: late } })
    expect(twice.result).toMatchObject({ status: 'completed', output: { draft: 'A draft.' } })
    expect(await turnsOf(twice.session)).toEqual([['write'], ['write'], []])
    const line = graph({
      name: 'line',
      description: 'makes facts',
      nodes: { a: says('a fact') },
      edges: [
        [START, 'a'],
        ['a', END],
      ],
    })
    const hidden = graph({
      name: 'hidden',
      nodes: { a: says('a') },
      edges: [
        [START, 'a'],
        ['a', END],
      ],
    })
    const model = scripted([
      {
        calls: [
          { tool: 'subagent', args: { agent: 'line', task: '{"topic":"rain"}' } },
          { tool: 'subagent', args: { agent: 'hidden', task: '{}' } },
        ],
      },
      (request) =>
        request.messages
          .flatMap((m) => (m.role === 'tool' && typeof m.content === 'string' ? [m.content] : []))
          .join(' | '),
    ])
    const led = withGraphs([line, hidden], { model, subagents: true })
    const { text } = await led.run('Find facts.')
    expect(text).toContain('{"draft":null,"facts":["a fact"],"topic":"rain"}')
    expect(text).toContain('There is no agent "hidden"')
  })
})

describe('a node that has its session looked at again', () => {
  it.each(STORAGES)(
    'B-GRAPH-75: begins the graph again over its state when the time has come (%s)',
    async (storage) => {
      const store = storeOf(storage)
      const looks = graph({
        name: 'looks',
        nodes: {
          look: node({
            effect: 'read',
            to: [END],
            reads: ({ facts }) => ({ seen: facts.length }),
            run: ({ seen }) => {
              const update = { facts: [`look ${seen}`] }
              if (seen === 2) return command({ update, goto: END })
              return command({ update, goto: END, wake: { due: store.now() + 1, reason: 'Look again.', key: 'look' } })
            },
          }),
        },
        edges: [[START, 'look']],
      })
      const { session, harness } = await runOf(looks, { topic: 'rain' }, { store })
      await harness.work({ idleMs: 200 })
      expect(await session.result()).toMatchObject({
        status: 'completed',
        output: { topic: 'rain', facts: ['look 0', 'look 1', 'look 2'] },
      })
      expect(ofType(await eventsIn(session), 'run.settled').map(({ outcome }) => outcome.type)).toEqual([
        'completed',
        'completed',
        'completed',
      ])
    },
  )

  it('B-GRAPH-75: refuses a wake without a time, and the run says so', async () => {
    const odd = graph({
      name: 'odd',
      nodes: {
        look: node({
          effect: 'read',
          to: [END],
          run: () => command<object, typeof END>({ goto: END, wake: { due: Number.NaN, reason: 'x', key: 'k' } }),
        }),
      },
      edges: [[START, 'look']],
    })
    expect(failureIn((await runOf(odd)).result)).toContain('"wake.due" of command must be a number of milliseconds')
  })
})
