// `terret workflow`: lists and draws the workflows there are, runs one of a file in a new session, and lists their runs.
import type { Card } from '../../kernel/index.ts'
import type { Harness } from '../../index.ts'
import type { Graph } from '../../graphs/index.ts'
import type { Call } from '../args.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { EXIT, endOf, Refusal } from '../exit.ts'
import { flowAgent, type FlowFile, flowFiles, type Flows, flowGraph, flowNamed, readFlow } from '../state/flows.ts'
import { cardsIn, startIn } from '../state/folders.ts'
import { homeOf, realFolder } from '../state/home.ts'
import { inPlace, readPlace } from '../state/place.ts'
import { print, printJson, shortId, warn } from '../present/print.ts'
import { setupOf, withHarness, work } from '../state/work.ts'
import { graphsOf, isPlanned } from '../state/workflows.ts'
import { visible } from '../../view/invisible.ts'
import { isObject, parsed } from '../../view/json.ts'
import { usdText } from '../../view/usd.ts'

const FORMATS = ['mermaid', 'json'] as const

export async function workflow(call: Call): Promise<number> {
  const [verb, name, ...more] = call.words
  const usage = `Usage: terret workflow [list | show NAME | run NAME [INPUT…] | runs]`
  const named = verb === 'show' || verb === 'run'
  if ((named && name === undefined) || (!named && name !== undefined) || (verb === 'show' && more.length > 0))
    throw new Refusal(EXIT.usage, usage)
  if (verb === 'list') return list(call)
  if (verb === 'run') return run(call, name ?? '', more.join(' ').trim())
  if (verb === 'runs') return runs(call)
  return draw(call, verb === 'show' ? name : verb)
}

function here(): Flows {
  const flows = flowFiles(homeOf(), realFolder(process.cwd()))
  for (const note of flows.notes) warn(clean(note))
  return flows
}

/** Without a name, those that come with the command line. */
async function draw(call: Call, name: string | undefined): Promise<number> {
  const given = call.text('format') ?? (call.is('json') ? 'json' : 'mermaid')
  const format = FORMATS.find((each) => each === given)
  if (!format) throw new Refusal(EXIT.usage, `--format must be one of: ${FORMATS.join(', ')}, not "${given}".`)
  const { toJson, toMermaid } = await import('../../graphs/index.ts')
  for (const graph of await chosen(name)) {
    if (format === 'json') printJson(toJson(graph))
    // A comment of Mermaid.
    else print(`%% ${graph.name}`, ...toMermaid(graph).trimEnd().split('\n'))
  }
  return EXIT.ok
}

async function chosen(name: string | undefined): Promise<readonly Graph[]> {
  const builtIn = await graphsOf(process.cwd())
  if (name === undefined) return builtIn
  const found = builtIn.filter((graph) => graph.name === name)
  if (found.length > 0) return found
  const names = builtIn.map((graph) => graph.name)
  return [await flowGraph(await readFlow(flowNamed(here(), name, names)))]
}

type Row = { readonly name: string; readonly kind: string; readonly from: string; readonly says: string }

/** A file that cannot be used has its reason in its row. */
async function list(call: Call): Promise<number> {
  const builtIn = (await graphsOf(process.cwd())).map(({ name }): Row => {
    return { name, kind: 'report', from: 'built in', says: 'a report from a folder of documents; see `terret start`' }
  })
  const rows = [...builtIn, ...(await Promise.all(here().files.map(rowOf)))]
  if (call.is('json')) printJson({ workflows: rows })
  else
    for (const { name, kind, from, says } of rows)
      print(`${name.padEnd(20)} ${kind.padEnd(10)} ${clean(from)}`, `  ${oneLine(says, 300)}`)
  return EXIT.ok
}

async function rowOf(from: FlowFile): Promise<Row> {
  try {
    const flow = await readFlow(from)
    const { description } = await flowGraph(flow)
    return { name: from.id, kind: flow.kind, from: from.file, says: description || 'no description' }
  } catch (error) {
    return { name: from.id, kind: 'wrong', from: from.file, says: endOf(error).text }
  }
}

async function run(call: Call, name: string, input: string): Promise<number> {
  const builtIn = (await graphsOf(process.cwd())).map((graph) => graph.name)
  const flows = here()
  if (builtIn.includes(name) && !flows.files.some(({ id }) => id === name))
    throw new Refusal(EXIT.usage, `The workflow "${name}" is run by: terret start TOPIC --documents DIR`)
  const flow = await readFlow(flowNamed(flows, name))
  // What is wrong with it is said before anything begins.
  const graph = await flowGraph(flow)
  const isEmpty = visible(input).text.trim() === ''
  if (flow.kind === 'council' && isEmpty)
    throw new Refusal(
      EXIT.usage,
      `EmptyQuestion: a council needs a question. Usage: terret workflow run ${name} QUESTION`,
    )
  if (flow.kind === 'delegation' && isEmpty)
    throw new Refusal(EXIT.usage, `EmptyGoal: a delegation needs a goal. Usage: terret workflow run ${name} GOAL`)
  const agent = flowAgent(flow.id)
  return inPlace(async (place) => {
    const { folder } = place
    const setup = await setupOf(place, folder, call, agent)
    const drive = async (harness: Harness): Promise<number> => {
      const session = await startIn(place, folder, (as) => harness.open({ ...as, agent }))
      if (!call.is('quiet') && !call.is('json')) warn(`Workflow ${name} ${shortId(session.id)}`)
      return work(call, { store: place.store, harness, setup, session, agent }, (deltas) =>
        session.stream(saidTo(graph, input), { deltas }),
      )
    }
    return withHarness(place, setup, call, drive, agent)
  })
}

/** What people type is text: also where it is a JSON object, which a graph would read as its state. */
function saidTo({ input: stateOf }: Graph, typed: string): string {
  const isText = typed !== '' && !isObject(parsed(typed))
  return isText || stateOf === null ? typed : JSON.stringify(stateOf(typed))
}

/** How a run stands, for people: a stopped one can be gone on with, a cancelled one is closed. */
export function statusOf({ status, outcome, due }: Pick<Card, 'status' | 'outcome' | 'due'>): string {
  if (status === 'terminated') return outcome === 'completed' ? 'completed' : 'cancelled'
  if (status !== 'idle' || due !== null) return 'running'
  if (outcome === null) return 'running'
  if (outcome === 'completed' || outcome === 'interrupted') return outcome
  return 'failed'
}

function runs(call: Call): Promise<number> {
  return readPlace(async (place) => {
    const cards = (await cardsIn(place)).filter(({ agent }) => isPlanned(agent))
    const rows = cards.map((card) => {
      const { session, agent, cost, at } = card
      return { session, workflow: agent.replace(/^flow-/, ''), status: statusOf(card), cost, at }
    })
    if (call.is('json')) printJson({ runs: rows })
    else if (rows.length === 0) warn('No workflow was run in this folder yet.')
    else
      for (const { session, workflow: name, status, cost, at } of rows)
        print(
          `${shortId(session).padEnd(9)} ${name.padEnd(20)} ${status.padEnd(12)} ${(cost > 0 ? usdText(cost) : '').padStart(8)}  ${new Date(at).toISOString()}`,
        )
    return EXIT.ok
  })
}
