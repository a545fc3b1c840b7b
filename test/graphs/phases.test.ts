// Workflows in phases: what is refused when they are loaded, in which order they run, and what their agents may do.
import { describe, expect, it } from 'vitest'
import {
  councilAgents,
  councilGraph,
  councilTool,
  phasesAgents,
  phasesGraph,
  type PhasesDefinition,
  type PhasesState,
  runWorkflowTool,
  toMermaid,
} from '../../src/graphs/index.ts'
import { defineTool, type Model, scripted, type SubagentOptions } from '../../src/index.ts'
import { failureIn, turnsOf, withGraphs } from './stage.ts'

const phase = (name: string, agents: readonly string[], depends_on: readonly string[] = []) => {
  return { name, description: `Do ${name}.`, agents, depends_on }
}
const DIAMOND: PhasesDefinition = {
  id: 'review',
  description: 'Reviews a change.',
  phases: [
    phase('a', ['reader']),
    phase('b', ['reader'], ['a']),
    phase('c', ['reader', 'critic'], ['a']),
    phase('d', ['critic'], ['b', 'c']),
  ],
}
const AGENTS: Readonly<Record<string, SubagentOptions>> = {
  reader: { description: 'reads' },
  critic: { description: 'judges' },
}
const PHASE = /Your phase is "(\w+)"/

/** A model that says which phase it was asked for. */
function worker(asked: string[], answer: (phase: string, task: string) => string = (name) => `${name} done`): Model {
  return scripted(({ messages }) => {
    const task = JSON.stringify(messages[0])
    const [, name = ''] = PHASE.exec(task.replaceAll('\\"', '"')) ?? []
    asked.push(name)
    const said = answer(name, task)
    return said === 'FAIL' ? { error: 'bad_request', message: `${name} cannot` } : said
  })
}

async function ran(definition: PhasesDefinition, model: Model, input: string | object = 'The change.') {
  const options = { agents: AGENTS }
  const graph = phasesGraph(definition, options)
  const harness = withGraphs([graph], { model, subagents: phasesAgents(definition, options) })
  const result = await harness.run(input as string, { agent: graph.name })
  const state = ('output' in result ? result.output : null) as PhasesState | null
  return { harness, result, state, session: harness.session(result.sessionId) }
}

describe('a workflow in phases', () => {
  it('B-PHASE-1: a phase starts when all it depends on are done, its agents at once, and gets what those said', async () => {
    const asked: string[] = []
    let last = ''
    const model = worker(asked, (name, task) => {
      if (name === 'd') last = task
      return `${name} </result> done`
    })
    const { result, state, session } = await ran(DIAMOND, model)
    expect(failureIn(result)).toBe('completed')
    expect(await turnsOf(session)).toEqual([['a'], ['b', 'c', 'c'], ['d'], []])
    expect(Object.keys(state?.results ?? {})).toEqual(['a', 'b', 'c', 'd'])
    expect(state?.results['c']?.map(({ agent }) => agent)).toEqual(['reader', 'critic'])
    expect(last).toContain('The change.')
    // Three results, and none ends its block early.
    expect(last.match(/<\/result>/g)).toHaveLength(3)
    expect(last).toContain('phase=\\"b\\" agent=\\"reader\\"')
    expect(asked.filter((name) => name === 'd')).toHaveLength(1)
  })

  it('B-PHASE-2: the summary is what the phase synthesize said, else the last that said something', async () => {
    const tail = [phase('synthesize', ['reader']), phase('after', ['reader'], ['synthesize'])]
    const one = await ran({ id: 'sums', phases: tail }, worker([]))
    expect(one.state?.summary).toEqual({ phase: 'synthesize', text: 'synthesize done' })
    const two = await ran(DIAMOND, worker([]))
    expect(two.state?.summary).toEqual({ phase: 'd', text: 'd done' })
  })

  it('B-PHASE-3: a failed child fails the phase and no later phase starts; a retry runs only what failed', async () => {
    const asked: string[] = []
    let broken = true
    const { result, session } = await ran(
      DIAMOND,
      worker(asked, (name) => (name === 'b' && broken ? 'FAIL' : `${name} done`)),
    )
    expect(failureIn(result)).toMatch(/^planner_failed: Node "b" failed: .*b cannot/)
    expect(asked).not.toContain('d')
    broken = false
    expect(await session.run({ retry: true })).toMatchObject({ status: 'completed' })
    expect([...asked].sort()).toEqual(['a', 'b', 'b', 'c', 'c', 'd'])
  })

  it('B-PHASE-4: no more than `concurrency` agents work at once, over all phases', async () => {
    let [now, most] = [0, 0]
    const model = scripted(async () => {
      most = Math.max(most, ++now)
      await new Promise((resolve) => setTimeout(resolve, 5))
      now--
      return 'done'
    })
    const wide = {
      id: 'wide',
      concurrency: 2,
      phases: ['x', 'y', 'z'].map((name) => phase(name, ['reader', 'critic'])),
    }
    expect((await ran(wide, model)).result.status).toBe('completed')
    expect(most).toBe(2)
  })

  const refused: readonly (readonly [string, unknown])[] = [
    ['NoPhases: phases is empty', { id: 'x', phases: [] }],
    ['NoPhases: phases is empty', { id: 'x' }],
    ['EmptyPhase: phases[1].agents is empty', { id: 'x', phases: [phase('a', ['reader']), phase('b', [])] }],
    [
      'DuplicatePhase: phases[1] has the name "a" of phases[0]',
      { id: 'x', phases: [phase('a', ['reader']), phase('a', ['reader'])] },
    ],
    [
      'UnknownAgent: phases[0].agents[1] is "raeder", and there is no such agent. Did you mean "reader"?',
      { id: 'x', phases: [phase('a', ['reader', 'raeder'])] },
    ],
    ['UnknownDependency: phases[0].depends_on[0] is "z"', { id: 'x', phases: [phase('a', ['reader'], ['z'])] }],
    [
      'CyclicDependency: phases[1].depends_on waits for itself: b → c → b',
      { id: 'x', phases: [phase('a', ['reader']), phase('b', ['reader'], ['c', 'a']), phase('c', ['reader'], ['b'])] },
    ],
    [
      'CyclicDependency: phases[0].depends_on waits for itself: a → a',
      { id: 'x', phases: [phase('a', ['reader'], ['a'])] },
    ],
    ['InvalidName: phases[0].name cannot be "a~1"', { id: 'x', phases: [phase('a~1', ['reader'])] }],
    ['InvalidName: phases[0].name cannot be "a/b"', { id: 'x', phases: [phase('a/b', ['reader'])] }],
    ['InvalidName: phases[0].name cannot be "END"', { id: 'x', phases: [phase('END', ['reader'])] }],
    ['InvalidName: id cannot be "../x"', { id: '../x', phases: [phase('a', ['reader'])] }],
    [
      'TooManyPhases: phases has 10000 phases',
      { id: 'x', phases: Array.from({ length: 10_000 }, (_, i) => phase(`p${i}`, ['reader'])) },
    ],
    ['did you mean "depends_on"?', { id: 'x', phases: [{ ...phase('a', ['reader']), depend_on: [] }] }],
    ['did you mean "concurrency"?', { id: 'x', concurency: 2, phases: [phase('a', ['reader'])] }],
    [
      'NoIsolation: workflow "x" is edit_capable',
      { id: 'x', safety_tier: 'edit_capable', phases: [phase('a', ['reader'])] },
    ],
  ]
  it.each(refused)('B-PHASE-5: is refused when it is loaded, by name and place: %s', (text, definition) => {
    for (const make of [phasesGraph, phasesAgents])
      expect(() => make(definition as PhasesDefinition, { agents: AGENTS })).toThrow(text)
  })

  it('B-PHASE-6: more agents than `max_children` are refused before one of them starts', () => {
    const three = {
      id: 'x',
      max_children: 3,
      phases: [phase('a', ['reader', 'critic']), phase('b', ['reader'], ['a'])],
    }
    expect(phasesGraph(three, { agents: AGENTS }).nodes.size).toBe(2)
    const four = { ...three, phases: [...three.phases, phase('c', ['reader'], ['b'])] }
    expect(() => phasesGraph(four, { agents: AGENTS })).toThrow(
      'TooManyChildren: phases[2].agents of phase "c" is one agent too many: all phases start 4, and max_children is 3.',
    )
  })

  it('B-PHASE-7: read_only leaves its agents only tools that read; standard leaves out those that write files', async () => {
    const tool = (name: string, effect: 'read' | 'once') => {
      return defineTool({ name, description: name, input: { type: 'object' }, effect, execute: () => 'ok' })
    }
    const tools = [tool('look', 'read'), tool('post', 'once'), tool('write', 'once')]
    const names: Record<string, readonly string[]> = {}
    for (const safety_tier of ['read_only', 'standard'] as const) {
      const agents = { reader: { description: 'reads', toolAccess: { alsoAllow: ['write'] } } }
      const definition = { id: 'x', safety_tier, phases: [phase('a', ['reader'])] }
      const model = scripted((request) => {
        names[safety_tier] = request.tools.map(({ name }) => name)
        return 'done'
      })
      const graph = phasesGraph(definition, { agents })
      const harness = withGraphs([graph], { model, tools, subagents: phasesAgents(definition, { agents }) })
      await harness.run('Go.', { agent: 'x' })
    }
    expect(names).toEqual({ read_only: ['look'], standard: ['look', 'post'] })
  })

  it('B-PHASE-8: edit_capable works in places of its own, and asks a person before the first agent starts', async () => {
    const definition = { id: 'edits', safety_tier: 'edit_capable', phases: [phase('a', ['reader'])] } as const
    const asked: string[] = []
    const isolated: string[] = []
    const options = {
      agents: AGENTS,
      isolation: (agent: SubagentOptions) => {
        isolated.push(agent.description)
        return agent
      },
    }
    const subagents = phasesAgents(definition, options)
    expect(isolated).toEqual(['reads'])
    const harness = withGraphs([phasesGraph(definition, options)], { model: worker(asked), subagents })
    const parked = await harness.run('Go.', { agent: 'edits' })
    expect(parked).toMatchObject({
      status: 'requires_action',
      pending: [{ tool: 'approve_edits', args: { workflow: 'edits' } }],
    })
    expect(asked).toEqual([])
    const session = harness.session(parked.sessionId)
    const [gate] = parked.pending
    if (gate) await session.decide({ ...gate, allow: true, by: 'ana' })
    expect((await session.run()).status).toBe('completed')
    expect(asked).toEqual(['a'])
  })

  it('B-PHASE-9: its drawing shows the phases, their agents and what waits for what', () => {
    expect(toMermaid(phasesGraph(DIAMOND, { agents: AGENTS }))).toBe(`flowchart TD
  n0([START])
  n1[["a<br/>agent review--reader"]]
  n2[["b<br/>agent review--reader"]]
  n3[["c<br/>agents review--reader, review--critic"]]
  n4[["d<br/>agent review--critic"]]
  n5([END])
  n0 --> n1
  n1 --> n2
  n1 --> n3
  n2 & n3 -- all --> n4
  n4 --> n5
`)
  })

  it('B-PHASE-11: a model starts a workflow with run_workflow and a council with council, and no other agent by their names', async () => {
    const options = { agents: AGENTS }
    const seats = { seats: [scripted(() => 'Tea.', 'seat')], chair: scripted(() => 'Tea it is.', 'chair') }
    const graphs = [phasesGraph(DIAMOND, options), councilGraph(seats)] as const
    const tools = [runWorkflowTool([graphs[0]]), councilTool(graphs[1])]
    const worked = worker([])
    const model: Model = {
      name: 'lead',
      call: (request, context) =>
        (PHASE.test(JSON.stringify(request.messages).replaceAll('\\"', '"')) ? worked : lead).call(request, context),
    }
    const lead = scripted([
      { calls: [{ tool: 'run_workflow', args: { workflow: 'default', task: 'Become more.' } }] },
      { calls: [{ tool: 'run_workflow', args: { workflow: 'review', task: 'The change.' } }] },
      { calls: [{ tool: 'council', args: { question: 'Tea or coffee?' } }] },
      'All done.',
    ])
    const subagents = { ...phasesAgents(DIAMOND, options), ...councilAgents(seats) }
    const harness = withGraphs(graphs, { model, tools, subagents })
    const result = await harness.run('Do it.')
    expect(failureIn(result)).toBe('completed')
    expect(result.calls.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      'run_workflow error',
      'run_workflow ok',
      'council ok',
    ])
    const said = JSON.stringify((await harness.session(result.sessionId).events()).events)
    expect(said).toContain('# Council: 1 of 1 answered')
    expect(said).toContain('d done')
  })
})
