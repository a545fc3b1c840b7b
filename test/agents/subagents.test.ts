// Definitions as agents of a harness: tiers, tools, prompts, models and limits, played by scripted models.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type AgentDefinition,
  type AgentPins,
  chosenModel,
  loadAgents,
  promptOf,
  subagentsOf,
} from '../../src/agents/index.ts'
import {
  defineTool,
  Harness,
  memory,
  type Request,
  type Script,
  scripted,
  type SubagentOptions,
  type Tool,
} from '../../src/index.ts'
import { objectField, optionalField, textField } from '../../src/tools/core/argument-schema.ts'
import { skillTools } from '../../src/tools/index.ts'

const { definitions } = await loadAgents()
const definition = (id: string): AgentDefinition => {
  const found = definitions.find((each) => each.id === id)
  if (!found) throw new Error(`no ${id}`)
  return found
}
const variant = (id: string, change: Partial<AgentDefinition>): AgentDefinition => ({ ...definition(id), ...change })

const READERS = ['read', 'list', 'glob', 'search', 'jsonl_search', 'web_fetch', 'extract_from_result', 'skill_read']
const WRITERS = ['write', 'edit', 'bash', 'skill_run', 'parallel_llm']
const tool = (name: string, effect: 'read' | 'once'): Tool =>
  defineTool({
    name,
    description: name,
    input: objectField({ path: optionalField(textField('Where.')) }),
    effect,
    execute: () => `${name} ran`,
  })
const asking = defineTool({
  name: 'ask_user',
  description: 'asks',
  input: objectField({ question: textField('What.') }),
  effect: 'once',
})
const tools = [...READERS.map((name) => tool(name, 'read')), ...WRITERS.map((name) => tool(name, 'once')), asking]

function harnessOf(script: Script, subagents: Readonly<Record<string, SubagentOptions>>, more: object = {}) {
  const requests: Request[] = []
  const model = scripted((request, taken) => {
    requests.push(request)
    return typeof script === 'function' ? script(request, taken) : (script[taken] as string)
  })
  const store = memory()
  return { harness: new Harness({ model, tools, store, subagents, ...more }), requests, store }
}

const names = (request: Request | undefined): readonly string[] =>
  (request?.tools ?? []).map(({ name }) => name).toSorted()

describe('each archetype, played by a scripted model', () => {
  const { subagents } = subagentsOf(definitions, { tools })

  it.each(definitions.map(({ id }) => id))(
    'B-DEFINE-20: %s starts with its tools, prompt and limits, and ends',
    async (id) => {
      const each = definition(id)
      const first =
        each.tools === 'all' ? 'read' : (each.tools.find((name) => READERS.includes(name)) ?? 'extract_from_result')
      const { harness, requests, store } = harnessOf(
        (_request, taken) => (taken === 0 ? { calls: [{ tool: first, args: {} }] } : 'The answer.'),
        subagents,
      )
      const result = await harness.run('Do it.', { agent: id })
      expect(result).toMatchObject({ status: 'completed', text: 'The answer.' })
      // The triage of events has no tools at all, so its call comes to nothing.
      expect(result.calls).toMatchObject([{ tool: first, status: id === 'trigger_triage' ? 'error' : 'ok' }])
      const [request] = requests
      expect(request?.instructions).toContain(each.prompt.split('\n')[0])
      const offered = names(request)
      if (each.sandbox === 'read_only') for (const writer of WRITERS) expect(offered).not.toContain(writer)
      if (each.tools !== 'all')
        for (const name of offered.filter((one) => !/^(subagent|delegate_|retrieve_original$)/.test(one)))
          expect(each.tools).toContain(name)
      const delegates = each.subagents.map((child) => definition(child).delegateName)
      const integrations = each.integrations ? ['delegate_to_integrations_agent'] : []
      expect(offered.filter((name) => name.startsWith('delegate_'))).toEqual([...delegates, ...integrations].toSorted())
      expect(offered.includes('subagent')).toBe(delegates.length + integrations.length > 0)
      const events = (await store.read(result.sessionId, 0)).events
      const begun = events.find((event) => event.type === 'run.started')
      expect(begun).toMatchObject({ limits: { modelRequests: each.maxIterations } })
      if (each.timeoutMs !== null) expect(begun).toMatchObject({ limits: { activeMs: each.timeoutMs } })
      await harness.close()
    },
  )

  it('B-DEFINE-21: an archetype that never ends is stopped at its own limit', async () => {
    const { harness } = harnessOf(
      (_request, taken) => ({ calls: [{ tool: 'read', args: { path: `${taken}` } }] }),
      subagents,
    )
    const result = await harness.run('Go on and on.', { agent: 'critic' })
    expect(result.status).not.toBe('completed')
    expect(result.usage.modelRequests).toBeLessThanOrEqual(12)
    await harness.close()
  })
})

describe('definitions as subagents', () => {
  it('B-DEFINE-22: delegate_<id> starts exactly that agent, and its answer is the result', async () => {
    const { subagents } = subagentsOf(definitions, { tools })
    const { harness, requests, store } = harnessOf(({ instructions, messages }) => {
      if (instructions.includes('You review.')) return 'Use it.'
      return messages.length > 1
        ? 'Reviewed.'
        : { calls: [{ tool: 'delegate_critic', args: { task: 'Review a.ts.' } }] }
    }, subagents)
    const result = await harness.run('Is it good?', { agent: 'orchestrator' })
    expect(result).toMatchObject({
      text: 'Reviewed.',
      calls: [{ tool: 'delegate_critic', status: 'ok', content: 'Use it.' }],
    })
    const children = (await store.list({ root: result.sessionId, limit: 10 })).filter(
      ({ session }) => session !== result.sessionId,
    )
    expect(children).toMatchObject([{ agent: 'critic' }])
    expect(requests.map((request) => request.instructions.includes('You review.'))).toEqual([false, true, false])
    await harness.close()
  })

  it('B-DEFINE-23: an agent that is not listed is refused, and nothing is made', async () => {
    const { subagents } = subagentsOf(definitions, { tools })
    const script = [{ calls: [{ tool: 'subagent', args: { task: 'x', agent: 'code_executor' } }] }, 'So be it.']
    const { harness, store } = harnessOf((_request, taken) => script[taken] ?? 'x', subagents)
    const result = await harness.run('Write.', { agent: 'planner' })
    expect(result.calls).toMatchObject([
      { status: 'error', content: expect.stringContaining('choose one of: researcher, summarizer') as string },
    ])
    expect(await store.list({ root: result.sessionId, limit: 10 })).toHaveLength(1)
    await harness.close()
  })

  it('B-DEFINE-31: a parent reads no more of an answer than maxResultChars, and where the rest is', async () => {
    const { harness } = harnessOf(
      ({ messages }) => {
        const [first] = messages
        if (JSON.stringify(first).includes('long')) return 'x'.repeat(5_000)
        return messages.length > 1 ? 'Done.' : { calls: [{ tool: 'subagent', args: { agent: 'short', task: 'long' } }] }
      },
      { short: { description: 's', maxResultChars: 300 } },
    )
    const { calls } = await harness.run('Go.')
    expect(calls[0]?.content).toMatch(/^x{300}\n\[cut: the whole answer has 5000 characters and is in session /)
    await harness.close()
  })

  it('B-DEFINE-32: in a harness with detached children, lists and tiers hold for spawn_subagent too, and one without a name is one like itself', async () => {
    const { subagents } = subagentsOf(definitions, { tools })
    const tasks = [{ agent_id: 'code_executor', prompt: 'x' }, { prompt: 'x' }, { agent_id: 'fork', prompt: 'x' }]
    const { harness, requests, store } = harnessOf(
      (_request, taken) => (taken < 3 ? { calls: [{ tool: 'spawn_subagent', args: tasks[taken] ?? {} }] } : 'Done.'),
      subagents,
      { detached: true },
    )
    const { calls, sessionId } = await harness.run('x', { agent: 'planner' })
    for (const call of calls) expect(call.content).toContain('choose one of: researcher, summarizer')
    expect(names(requests[0])).toEqual(
      expect.arrayContaining(['delegate_researcher', 'spawn_subagent', 'wait_subagent']),
    )
    expect(await store.list({ root: sessionId, limit: 10 })).toHaveLength(1)
    await harness.close()
  })

  it.each([
    ['a list', { subagents: ['hand'] }],
    ['no list', {}],
  ])(
    'B-DEFINE-32: an agent with %s that starts one its tier does not allow is refused for the tier, and nothing is made',
    async (_name, listed) => {
      const { harness, store } = harnessOf(
        (_request, taken) =>
          taken < 1 ? { calls: [{ tool: 'spawn_subagent', args: { agent_id: 'peer', prompt: 'x' } }] } : 'Done.',
        {
          lead: { description: 'l', tier: 'reasoning', ...listed },
          peer: { description: 'p', tier: 'reasoning' },
          hand: { description: 'h', tier: 'worker' },
        },
        { detached: true },
      )
      const { calls, sessionId } = await harness.run('x', { agent: 'lead' })
      expect(calls).toMatchObject([{ status: 'denied' }])
      const results = (await store.read(sessionId, 0)).events.filter(({ type }) => type === 'agent.tool_result')
      expect(results).toMatchObject([{ metadata: { error_type: 'SpawnTierRefused' } }])
      expect(calls[0]?.content).toContain(
        '"peer" is a reasoning agent, and a reasoning agent starts only worker agents.',
      )
      expect(await store.list({ root: sessionId, limit: 10 })).toHaveLength(1)
      await harness.close()
    },
  )

  const worker = { description: 'w', tier: 'worker' } as const
  const reasoning = { description: 'r', tier: 'reasoning' } as const
  it.each([
    ['worker', { a: { ...worker, subagents: ['b'] }, b: worker }, 'a worker agent starts no other agents'],
    ['reasoning', { a: { ...reasoning, subagents: ['b'] }, b: reasoning }, 'starts only worker agents'],
    [
      'chat',
      { a: { ...worker, tier: 'chat', subagents: ['b'] }, b: { ...worker, tier: 'chat' } },
      'starts only reasoning and worker',
    ],
    ['unknown', { a: { ...reasoning, subagents: ['bb'] }, b: worker }, 'Did you mean "b"?'],
  ] as const)('B-DEFINE-24: a harness with a wrong list (%s) is refused in one sentence', (_name, subagents, rule) => {
    const make = () => new Harness({ model: scripted(['x']), subagents })
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    expect(make).toThrow(rule)
  })

  it('B-DEFINE-54: a delegateName that is a tool for leading subagents is refused', () => {
    const subagents = {
      lead: { description: 'l', subagents: ['hand'] },
      hand: { description: 'h', delegateName: 'list_subagents' },
    }
    const make = () => new Harness({ model: scripted(['x']), subagents, detached: true })
    expect(make).toThrow('"lead" would have two tools "list_subagents"')
  })

  it('B-DEFINE-25: without a list a tier leaves the agents below it, and without a tier all is as before', async () => {
    const { harness, requests } = harnessOf(['x', 'x', 'x'], {
      lead: reasoning,
      hand: worker,
      free: { description: 'f' },
    })
    await harness.run('x', { agent: 'lead' })
    await harness.run('x', { agent: 'hand' })
    await harness.run('x', { agent: 'free' })
    const said = requests.map(({ tools: all }) => all.find(({ name }) => name === 'subagent')?.description ?? 'none')
    expect(said[0]).toMatch(/Agents:\n- hand: w\n- free: f$/)
    // One without a tier may be started by any.
    expect(said[1]).toMatch(/Agents:\n- free: f$/)
    expect(said[2]).toMatch(/Agents:\n- lead: r\n- hand: w\n- free: f$/)
    await harness.close()
  })

  it('B-DEFINE-26: extra tools join and denied ones leave; a sandbox that only reads keeps both from loosening it', async () => {
    const changed = [
      variant('critic', {
        id: 'a',
        delegateName: 'da',
        tools: ['read'],
        extraTools: ['bash'],
        sandbox: 'none',
        disallowedTools: ['read'],
      }),
      variant('critic', { id: 'b', delegateName: 'db', tools: ['read', 'write'], extraTools: ['bash'] }),
    ]
    const { subagents } = subagentsOf(changed, { tools })
    const { harness, requests } = harnessOf(['x', 'x'], subagents)
    await harness.run('x', { agent: 'a' })
    await harness.run('x', { agent: 'b' })
    expect(requests.map(names)).toEqual([['bash'], ['read']])
    await harness.close()
  })

  it('B-DEFINE-27: a tool that is not there is named with file and line, and the agent does without it', () => {
    const own = variant('critic', { layer: 'user', file: 'c.md', lines: { tools: 4 }, tools: ['read', 'raed'] })
    expect(subagentsOf([own], { tools }).troubles).toEqual([
      'c.md:4: there is no tool "raed" here, so the agent does without it.',
    ])
  })

  it('B-DEFINE-28: tools of MCP servers come only to those whose skill_filter names them', async () => {
    const source = (name: string) => ({
      type: 'source' as const,
      name,
      tools: () => Promise.resolve([tool(`${name}__find`, 'read')]),
      close: () => Promise.resolve(),
    })
    const all = [...tools, source('mail'), source('code')]
    const one = variant('integrations_agent', { id: 'one', delegateName: 'do', skillFilter: ['mail'] })
    const { subagents } = subagentsOf([...definitions, one], {
      tools: all,
      sections: { integrations: ['mail', 'code'] },
    })
    const { harness, requests } = harnessOf(['x', 'x', 'x'], subagents, { tools: all })
    for (const agent of ['integrations_agent', 'one', 'critic']) await harness.run('x', { agent })
    expect(requests.map((request) => names(request).filter((name) => name.includes('__')))).toEqual([
      ['code__find', 'mail__find'],
      ['mail__find'],
      [],
    ])
    expect(requests[0]?.instructions).toContain('## Integrations\n\n- mail\n- code')
    expect(requests[1]?.instructions).toContain('## Integrations\n\n- mail\n\n')
    await harness.close()
  })

  it('B-DEFINE-61: an agent has the skills that its skill_filter names, in the catalogue and to read and run', async () => {
    const root = mkdtempSync(join(tmpdir(), 'terret-skills-'))
    onTestFinished(() => rmSync(root, { recursive: true, force: true }))
    for (const name of ['birds', 'trees']) {
      mkdirSync(join(root, 'skills', name), { recursive: true })
      writeFileSync(join(root, 'skills', name, 'SKILL.md'), `---\ndescription: about ${name}\n---\nLook at ${name}.\n`)
    }
    mkdirSync(join(root, 'work'))
    const skills = await skillTools({ folder: join(root, 'skills'), workspace: join(root, 'work') })
    const omit = { ...definition('researcher').omit, skillsCatalog: false }
    const filters = { birds: ['birds', 'mail'], none: ['mail'], every: 'all', plain: null } as const
    const made = Object.entries(filters).map(([id, skillFilter]) =>
      variant('researcher', {
        id,
        omit,
        skillFilter,
        sandbox: 'none',
        delegateName: `do_${id}`,
        tools: ['skill_read', 'skill_run'],
      }),
    )
    const { subagents } = subagentsOf(made, { tools: skills })
    const reads = { calls: ['trees', 'birds'].map((name) => ({ tool: 'skill_read', args: { name } })) }
    const { harness, requests } = harnessOf((_, taken) => (taken === 0 ? reads : 'x'), subagents, { tools: skills })
    const { calls } = await harness.run('x', { agent: 'birds' })
    expect(calls.map(({ status, content }) => [status, content])).toEqual([
      ['error', expect.stringContaining('There is no skill "trees". The skills are: birds.')],
      ['ok', expect.stringContaining('Look at birds.')],
    ])
    expect(requests[0]?.instructions).toContain('about birds')
    expect(requests[0]?.instructions).not.toContain('about trees')
    const told = async (agent: string): Promise<unknown> => {
      await harness.run('x', { agent })
      const last = requests.at(-1)
      return [names(last), ['birds', 'trees'].filter((name) => last?.instructions.includes(`about ${name}`))]
    }
    expect(await told('none')).toEqual([[], []])
    for (const agent of ['every', 'plain'])
      expect(await told(agent)).toEqual([
        ['skill_read', 'skill_run'],
        ['birds', 'trees'],
      ])
    const runs = skills.find(({ name }) => name === 'skill_run')?.filtered?.(['birds'])
    expect(runs?.rooted?.({ folder: join(root, 'work') })?.place?.()).toMatchObject({
      skills: [['birds', expect.any(String)]],
    })
    await harness.close()
  })

  it('B-DEFINE-29: the prompt has the sections that the definition does not omit and the host has', () => {
    const sections = { profile: 'PROFILE', memoryMd: 'PROMOTED', memoryContext: 'LEARNED' }
    const plain = variant('critic', { omit: { ...definition('critic').omit, safetyPreamble: true } })
    expect(promptOf(plain, sections)).toBe(plain.prompt)
    const all = promptOf(definition('orchestrator'), sections)
    const order = ['You are Orchestrator', 'PROFILE', 'You lead.', 'PROMOTED', 'LEARNED', '## Safety'].map((part) =>
      all.indexOf(part),
    )
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(order[0]).toBe(0)
    expect(promptOf(definition('orchestrator'))).not.toContain('## About the user')
    expect(promptOf(definition('orchestrator'), { profile: 'x'.repeat(100_000) }).length).toBeLessThan(30_000)
  })

  it('B-DEFINE-30: a pin counts before the definition’s model, and that before the parent’s; a temperature goes to named models', () => {
    const pins: AgentPins = {
      orchestrator: { model: 'p:lead' },
      teams: { planner: { lead_model: 'p:plan', agent_model: 'p:work' } },
    }
    const choice = (id: string, by: AgentPins = {}) => chosenModel(definition(id), definitions, by)
    expect(
      ['orchestrator', 'planner', 'researcher', 'critic', 'help'].map((id) => [choice(id), choice(id, pins)]),
    ).toEqual([
      [null, 'p:lead'],
      ['hint:reasoning', 'p:plan'],
      [null, 'p:work'],
      ['hint:reasoning', 'hint:reasoning'],
      [null, null],
    ])
    const asked: unknown[] = []
    const makeModel = (name: string, settings: object) => {
      asked.push([name, settings])
      return scripted(['x'])
    }
    const warm = variant('critic', { model: 'p:m', temperature: 0.9, lines: { temperature: 3 } })
    subagentsOf([warm, definition('help')], { makeModel })
    expect(asked).toEqual([['p:m', { temperature: 0.9 }]])
    expect(() => subagentsOf(definitions, { pins: { teams: { nobody: {} } } })).toThrow('there is no agent "nobody"')
    expect(() => subagentsOf(definitions, { pins: { orchestrater: {} } as AgentPins })).toThrow(
      'did you mean "pins.orchestrator"?',
    )
  })
})
