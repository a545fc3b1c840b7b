// The projection from logs to spans: the same bytes each time, whatever the log went through.
import { describe, expect, it } from 'vitest'
import { CONTENT, GEN_AI, type SessionLog, spansOf, TERRET } from '../../src/tracing/index.ts'
import { drawn, named, proposal, simple, Tale, TEN } from './tale.ts'

/** A run whose one call failed. */
function failing(): Tale {
  const tale = new Tale('root')
  tale.begin([tale.say('Read.')])
  tale.ask()
  const call = `${tale.reply([proposal('read')])}.0`
  tale.add({ type: 'agent.tool_use', call })
  const failure = { kind: 'NotFound', message: 'No such file.' } as const
  tale.add({ type: 'agent.tool_result', call, status: 'error', content: 'No such file.', failure })
  tale.settle()
  return tale
}

describe('what is captured', () => {
  it('B-TRACE-46: prompts, arguments and results of tools are captured each by itself (S0-89)', () => {
    const logs = [simple()]
    const found = (capture: Parameters<typeof spansOf>[1]) => {
      const names = new Set(spansOf(logs, capture).flatMap(({ attributes }) => Object.keys(attributes)))
      return Object.values(CONTENT).filter((name) => names.has(name))
    }
    const prompts = [CONTENT.inputMessages, CONTENT.outputMessages]
    expect(found({ capture: 'content' }).toSorted()).toEqual(
      [...prompts, CONTENT.toolArguments, CONTENT.toolResult].toSorted(),
    )
    expect(found({ capture: {} })).toEqual([])
    expect(found({ capture: { prompts: true } }).toSorted()).toEqual(prompts.toSorted())
    expect(found({ capture: { arguments: true } })).toEqual([CONTENT.toolArguments])
    expect(found({ capture: { results: true, prompts: false } })).toEqual([CONTENT.toolResult])
    expect(() => found({ capture: { result: true } as object })).toThrow('did you mean "capture.results"?')
    expect(() => found({ capture: 'all' as 'none' })).toThrow('"capture"')
  })

  it('B-TRACE-46: the message of an error is there only where all that it may repeat is captured', () => {
    const said = (capture: Parameters<typeof spansOf>[1]) =>
      named(spansOf([failing()], capture), 'execute_tool').exceptions.map(({ message }) => message)
    expect(said({ capture: { prompts: true, results: true } })).toEqual([undefined])
    expect(said({ capture: { arguments: true, results: true } })).toEqual(['No such file.'])
  })
})

describe('the projection', () => {
  it('B-TRACE-1: a run, its model calls and its tool calls are spans with the names of the conventions (S0-66)', () => {
    const spans = spansOf([simple()])
    expect(drawn(spans)).toEqual([
      'invoke_agent tester',
      '  chat claude-test',
      '  execute_tool read',
      '  chat claude-test',
    ])
    const [run, chat, tool] = spans
    expect(run).toMatchObject({ parentId: null, kind: 'internal', status: 'unset', startedAt: 1_020, exceptions: [] })
    expect(run?.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'tester',
      'gen_ai.conversation.id': 'root',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.usage.input_tokens': 220,
      'gen_ai.usage.output_tokens': 30,
      'terret.outcome': 'completed',
      'terret.cost_usd': 0.002,
    })
    expect(chat).toMatchObject({ kind: 'client', startedAt: 1_030, endedAt: 1_030 + TEN })
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': 'claude-test',
      'gen_ai.response.model': 'claude-test',
      'gen_ai.usage.cache_read.input_tokens': 80,
      'gen_ai.usage.cache_creation.input_tokens': 5,
      'gen_ai.usage.reasoning.output_tokens': 7,
      'terret.cost_usd': 0.0015,
    })
    expect(tool?.attributes).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'read',
      'gen_ai.tool.call.id': 'toolu_read',
      'terret.call': '5.0',
      'terret.call.status': 'ok',
    })
  })

  it('B-TRACE-32: a reply that was cut or refused says so in the attribute of the conventions, a whole one nothing', () => {
    const tale = new Tale('root')
    tale.begin()
    tale.ask()
    tale.reply([], { finish: 'length' })
    const [, cut] = spansOf([tale])
    expect(cut?.attributes[GEN_AI.finishReasons]).toBe('length')
    expect(spansOf([simple()])[1]?.attributes).not.toHaveProperty(GEN_AI.finishReasons)
  })

  it('B-TRACE-2: the same logs give the same bytes, in whatever order they are given', () => {
    const logs = family()
    const once = JSON.stringify(spansOf(logs))
    expect(JSON.stringify(spansOf(logs.toReversed()))).toBe(once)
    expect(JSON.stringify(spansOf(JSON.parse(JSON.stringify(logs)) as SessionLog[]))).toBe(once)
  })

  it('B-TRACE-2: ids are hex of fixed length and come from the session and the event alone', () => {
    const spans = spansOf(family())
    expect(spans.every(({ traceId }) => /^[0-9a-f]{32}$/.test(traceId))).toBe(true)
    expect(spans.every(({ spanId }) => /^[0-9a-f]{16}$/.test(spanId))).toBe(true)
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
    const [first] = spansOf([simple('golden')])
    expect([first?.traceId, first?.spanId]).toEqual(['2eceb5a1b7ad930aa43463fd334c134c', '6896372aae671582'])
  })

  it('B-TRACE-3: each run of a root session is a trace of its own, with everything below it', () => {
    const tale = simple()
    const input = tale.say('again')
    tale.begin([input])
    tale.ask([input])
    tale.reply([])
    tale.settle()
    const spans = spansOf([tale])
    const traces = [...new Set(spans.map(({ traceId }) => traceId))]
    expect(traces).toHaveLength(2)
    expect(traces.map((id) => spans.filter(({ traceId }) => traceId === id).length)).toEqual([4, 2])
  })

  it('B-TRACE-4: the total of tokens stands only where both of its parts are known (S0-68)', () => {
    const usages = [undefined, { inputTokens: 5 }, { outputTokens: 7 }, { inputTokens: 5, outputTokens: 7 }]
    const seen = usages.map((usage) => {
      const tale = new Tale('t')
      tale.begin()
      tale.ask()
      tale.reply([], usage ? { usage: usage as { inputTokens: number; outputTokens: number } } : {})
      tale.settle()
      const spans = spansOf([tale])
      const pick = (start: string) => {
        const { attributes } = named(spans, start)
        return [attributes[GEN_AI.inputTokens], attributes[GEN_AI.outputTokens], attributes[GEN_AI.totalTokens]]
      }
      return [pick('chat'), pick('invoke_agent')[2]]
    })
    expect(seen).toEqual([
      [[undefined, undefined, undefined], undefined],
      [[5, undefined, undefined], undefined],
      [[undefined, 7, undefined], undefined],
      [[5, 7, 12], 12],
    ])
  })

  it('B-TRACE-5: an open run has spans without an end, and the same spans once it has settled', () => {
    const whole = simple()
    for (let n = 1; n <= whole.events.length; n++) {
      const early = spansOf([{ session: 'root', events: whole.events.slice(0, n) }])
      const late = spansOf([whole])
      expect(early.map(({ spanId, startedAt }) => [spanId, startedAt])).toEqual(
        late.slice(0, early.length).map(({ spanId, startedAt }) => [spanId, startedAt]),
      )
      expect(early.every(({ status }) => status === 'unset')).toBe(true)
      if (n < whole.events.length && early[0]) expect(early[0].endedAt).toBe(null)
    }
  })

  it('B-TRACE-6: a model call that was lost with its worker is a span in error, and the next attempt goes on in the trace', () => {
    const tale = new Tale('t')
    tale.begin()
    tale.ask()
    tale.epoch = 2
    tale.add({ type: 'model.failed', class: 'lost', message: 'The worker was lost.', retryable: true })
    tale.ask()
    tale.reply([])
    tale.settle()
    const spans = spansOf([tale])
    expect(spans.map(({ name, status }) => [name, status])).toEqual([
      ['invoke_agent tester', 'unset'],
      ['chat', 'error'],
      ['chat claude-test', 'unset'],
    ])
    expect(spans[1]).toMatchObject({ attributes: { 'error.type': 'lost' }, exceptions: [{ type: 'lost' }] })
    expect(spans[0]?.attributes[TERRET.attempts]).toBe(2)
  })

  it('B-TRACE-6: a call that was superseded or interrupted has ended and is no error', () => {
    for (const kind of ['superseded', 'interrupted'] as const) {
      const tale = new Tale('t')
      tale.begin()
      tale.ask()
      tale.add({ type: 'model.failed', class: kind, message: 'stopped', retryable: false })
      tale.add({ type: 'run.settled', outcome: { type: 'interrupted' } })
      const chat = named(spansOf([tale]), 'chat')
      expect(chat).toMatchObject({ status: 'unset', endedAt: chat.startedAt + TEN, exceptions: [] })
      expect(chat.attributes[TERRET.stopped]).toBe(kind)
    }
  })

  it('B-TRACE-7: a call that never ran is a span without length, in error', () => {
    const tale = new Tale('t')
    tale.begin()
    tale.ask()
    const seq = tale.reply([
      proposal('drop_table', { gate: { type: 'ask', class: 'x', n: 1, roles: [], expiresAt: null } }),
    ])
    expect(spansOf([tale])).toHaveLength(2)
    const failure = { kind: 'Denied', message: 'WHY-IT-WAS-DENIED' } as const
    tale.add({ type: 'agent.tool_result', call: `${seq}.0`, status: 'denied', content: 'no', failure })
    const tool = named(spansOf([tale]), 'execute_tool')
    expect(tool).toMatchObject({ status: 'error', exceptions: [{ type: 'Denied' }] })
    expect(tool.endedAt).toBe(tool.startedAt)
    expect(tool.attributes).toMatchObject({ 'error.type': 'Denied', 'terret.call.starts': 0 })
  })

  it('B-TRACE-7: a call that was started again after a crash is one span', () => {
    const tale = new Tale('t')
    tale.begin()
    tale.ask()
    const seq = tale.reply([proposal('fetch', { effect: 'read' })])
    tale.add({ type: 'agent.tool_use', call: `${seq}.0` })
    tale.epoch = 2
    tale.use(`${seq}.0`)
    const tool = named(spansOf([tale]), 'execute_tool')
    expect(tool).toMatchObject({ status: 'unset', attributes: { 'terret.call.starts': 2 } })
    expect((tool.endedAt ?? 0) - tool.startedAt).toBe(2 * TEN)
  })

  it('B-TRACE-8: a run that failed, was halted or met a limit is in error, and says which', () => {
    const failure = { kind: 'Unavailable', message: 'WHAT-THE-PROVIDER-SAID' } as const
    const outcomes = [
      { type: 'failed', reason: 'provider_error', failure },
      { type: 'limit', limit: 'usd' },
      { type: 'halted', reason: 'WHY-IT-WAS-HALTED' },
      { type: 'interrupted' },
    ] as const
    const seen = outcomes.map((outcome) => {
      const tale = new Tale('t')
      tale.begin()
      tale.add({ type: 'run.settled', outcome })
      const [run] = spansOf([tale])
      return [run?.status, run?.attributes['error.type'], run?.attributes[TERRET.outcome]]
    })
    expect(seen).toEqual([
      ['error', 'provider_error', 'failed'],
      ['error', 'limit_usd', 'limit'],
      ['error', 'halted', 'halted'],
      ['unset', undefined, 'interrupted'],
    ])
  })

  it('B-TRACE-9: a run of a fork says where its session was forked from', () => {
    const tale = new Tale('fork')
    tale.events[0] = {
      seq: 1,
      at: 1,
      epoch: 0,
      type: 'session.created',
      agent: 'a',
      planner: 'm',
      fork: { session: 'old', seq: 9 },
    }
    tale.begin()
    expect(spansOf([tale])[0]?.attributes).toMatchObject({ 'terret.fork.session': 'old', 'terret.fork.seq': 9 })
  })
})

describe('children', () => {
  it('B-TRACE-10: of children that work at the same time each stands under its own call (AC-56)', () => {
    expect(drawn(spansOf(family()))).toEqual([
      'invoke_agent tester',
      '  chat claude-test',
      '  execute_tool subagent',
      '    invoke_agent tester',
      '      chat child-0',
      '  execute_tool subagent',
      '    invoke_agent tester',
      '      chat child-1',
      '      execute_tool subagent',
      '        invoke_agent tester',
      '          chat grandchild',
      '      chat child-1',
      '  execute_tool subagent',
      '    invoke_agent tester',
      '      chat child-2',
      '  chat claude-test',
    ])
  })

  it('B-TRACE-10: a child is in the trace of its root, and its own log alone knows the id of the span above it', () => {
    const logs = family()
    const spans = spansOf(logs)
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    const child = spans.find((span) => span.attributes[GEN_AI.conversation] === 'root~4.1')
    const above = spans.find(({ spanId }) => spanId === child?.parentId)
    expect(above?.attributes).toMatchObject({ 'terret.call': '4.1', 'terret.child.session': 'root~4.1' })
  })

  it('B-TRACE-10: a session that only looks like a child is none', () => {
    const logs = family()
    const stranger = new Tale('root~4.0')
    stranger.begin()
    const spans = spansOf([...logs.filter((log) => log.session !== 'root~4.0'), stranger])
    const own = spans.find((span) => span.attributes[GEN_AI.conversation] === 'root~4.0')
    expect(own?.parentId).toBe(null)
  })
})

describe('content', () => {
  const texts = ['ASKED-BY-THE-USER', 'SAID-BY-THE-MODEL', 'GIVEN-TO-THE-TOOL', 'FOUND-BY-THE-TOOL']
  const hidden = [...texts, 'WHY-IT-WAS-DENIED', 'WHAT-THE-PROVIDER-SAID', 'WHAT-WAS-NOTED', 'HALF-AN-ANSWER']

  it('B-TRACE-11: without capture no text of a prompt, an argument, a result or an error is in any span', () => {
    const written = JSON.stringify(spansOf([troubled()]))
    expect(hidden.filter((text) => written.includes(text))).toEqual([])
    expect(Object.values(CONTENT).filter((name) => written.includes(name))).toEqual([])
  })

  it('B-TRACE-11: with capture each text is there, and there once', () => {
    const written = JSON.stringify(spansOf([simple()], { capture: 'content' }))
    expect(texts.map((text) => written.split(text).length - 1)).toEqual([1, 2, 1, 1])
    const troubles = JSON.stringify(spansOf([troubled()], { capture: 'content' }))
    expect(hidden.filter((text) => !troubles.includes(text))).toEqual(['ASKED-BY-THE-USER', 'FOUND-BY-THE-TOOL'])
  })

  it('B-TRACE-11: what is captured is bounded, and not cut within a character', () => {
    const tale = new Tale('t')
    const input = tale.say(`x${'😀'.repeat(40_000)}`)
    tale.begin([input])
    tale.ask([input])
    const text = String(named(spansOf([tale], { capture: 'content' }), 'chat').attributes[CONTENT.inputMessages])
    expect(text.length).toBeLessThan(40_000)
    expect(text).toContain('80001 characters in all')
    expect(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text)).toBe(false)
  })

  it('B-TRACE-12: a call is summed up in one line without content: its name and how much or what class (S2-31)', () => {
    const [ok, failed] = [simple(), troubled()].map((tale) => {
      const tool = spansOf([tale]).find((span) => span.name.startsWith('execute_tool'))
      return tool?.attributes[TERRET.summary]
    })
    expect([ok, failed]).toEqual(['read: ok (17 chars)', 'drop_table: failed (Denied)'])
  })

  it('B-TRACE-12: a name that a model made up is one short line', () => {
    const tale = new Tale('t')
    tale.begin()
    tale.ask()
    const seq = tale.reply([proposal(`a\nb${'c'.repeat(500)}`)])
    tale.use(`${seq}.0`)
    const { name, attributes } = named(spansOf([tale]), 'execute_tool')
    expect(name).toHaveLength('execute_tool '.length + 128)
    expect(name).not.toContain('\n')
    expect(String(attributes[TERRET.summary])).not.toContain('\n')
  })

  it('B-TRACE-13: instructions and toolset stand in a span by their hash alone, whatever is captured', () => {
    const [run] = spansOf([simple()], { capture: 'content' })
    expect(run?.attributes).toMatchObject({
      'terret.instructions.hash': 'b'.repeat(64),
      'terret.toolset.hash': 'a'.repeat(64),
    })
    expect(run?.attributes[CONTENT.instructions]).toBe(undefined)
  })
})

/** A root with three children at once, the second with a child of its own. The events of the children overlap in time. */
function family(): readonly SessionLog[] {
  const sub = () => proposal('subagent', { gate: { type: 'outside', child: 'tester' } })
  const root = new Tale('root')
  root.begin()
  root.ask()
  const seq = root.reply([sub(), sub(), sub()])
  for (const i of [0, 1, 2]) root.add({ type: 'agent.custom_tool_use', call: `${seq}.${i}` })
  const children = [0, 1, 2].map((i) => {
    return new Tale(`root~${seq}.${i}`, { session: 'root', call: `${seq}.${i}`, root: 'root', depth: 1 }, root.at + i)
  })
  for (const child of children) child.begin()
  for (const child of children) child.ask()
  const inner = (children[1] as Tale).reply([sub()], { route: 'anthropic:child-1' })
  ;(children[1] as Tale).add({ type: 'agent.custom_tool_use', call: `${inner}.0` })
  const parent = { session: `root~${seq}.1`, call: `${inner}.0`, root: 'root', depth: 2 }
  const grandchild = new Tale(`root~${seq}.1~${inner}.0`, parent, 1_200)
  grandchild.begin()
  grandchild.ask()
  grandchild.reply([], { route: 'anthropic:grandchild' })
  grandchild.settle()
  answer(children[1] as Tale, `${inner}.0`)
  ;(children[1] as Tale).ask()
  for (const [i, child] of children.entries()) {
    child.reply([], { route: `anthropic:child-${i}` })
    child.settle()
  }
  root.at = 2_000
  for (const i of [2, 0, 1]) answer(root, `${seq}.${i}`)
  root.ask()
  root.reply([])
  root.settle()
  return [root, ...children, grandchild]
}

function answer(tale: Tale, call: string): void {
  const id = `child:${call}`
  const from = tale.add({ type: 'user.custom_tool_result', id, call, ok: true, content: 'SAID-BY-THE-CHILD' })
  tale.add({ type: 'agent.tool_result', call, status: 'ok', content: '', from })
}

/** Everything that can go wrong, with a text to it. */
function troubled(): Tale {
  const tale = new Tale('t')
  tale.begin()
  const note = tale.add({ type: 'note.added', kind: 'nudge', text: 'WHAT-WAS-NOTED' })
  tale.ask([note])
  tale.add({
    type: 'model.failed',
    class: 'server',
    message: 'WHAT-THE-PROVIDER-SAID',
    retryable: true,
    partial: 'HALF-AN-ANSWER',
  })
  tale.ask()
  const seq = tale.reply([proposal('drop_table')])
  const failure = { kind: 'Denied', message: 'WHY-IT-WAS-DENIED' } as const
  tale.add({ type: 'agent.tool_result', call: `${seq}.0`, status: 'denied', content: 'WHY-IT-WAS-DENIED', failure })
  tale.settle()
  return tale
}
