// A process that runs a workflow in phases until it rests, for phases-kill.long.test.ts. In the phase where it is to be killed it prints
// a line and waits; without one it prints how the run ended.
import { appendFileSync } from 'node:fs'
import { phasesAgents, phasesGraph } from '../../src/graphs/index.ts'
import { Harness, scripted } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

const [file = '', journal = '', session = '', place = ''] = process.argv.slice(2)

const phase = (name: string, depends_on: readonly string[]) => {
  return { name, description: `Do ${name}.`, agents: ['worker'], depends_on }
}
const definition = {
  id: 'diamond',
  phases: [phase('a', []), phase('b', ['a']), phase('c', ['a']), phase('d', ['b', 'c'])],
}
const options = { agents: { worker: { description: 'works' } } }

/** Says which phase it works on. The one that is killed waits until the others of its superstep are done. */
const model = scripted(async ({ messages }) => {
  const [, name = ''] = /Your phase is "(\w+)"/.exec(JSON.stringify(messages).replaceAll('\\"', '"')) ?? []
  if (name === place) await new Promise((resolve) => setTimeout(resolve, 300))
  appendFileSync(journal, `${name}\n`)
  if (name !== place) return `${name} done`
  process.stdout.write(`${place}\n`)
  return new Promise<string>(() => {})
})

const store = sqlite(file)
const harness = new Harness({
  model,
  graphs: [phasesGraph(definition, options)],
  subagents: phasesAgents(definition, options),
  store,
  secrets: {},
  worker: { leaseMs: 1_000 },
})
const { id } = await harness.open({ id: session, agent: 'diamond', reuse: true })
const begun = (await store.card(id))?.seq ?? 0
const result = await harness.session(id).run(begun > 1 ? undefined : 'Go.')
const output = 'output' in result ? result.output : null
process.stdout.write(`${JSON.stringify({ status: result.status, output })}\n`)
await harness.close()
await store.close()
