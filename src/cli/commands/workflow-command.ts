// `terret workflow`: lists and draws the workflows, runs one from a file in a new session, and lists the runs.
import type { Card } from '../../kernel/index.ts'
import type { Harness } from '../../index.ts'
import type { Graph } from '../../graphs/index.ts'
import type { CommandArgs } from '../args.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { EXIT, exitForError, CliError } from '../exit.ts'
import {
  flowAgent,
  type FlowFile,
  flowFiles,
  type Flows,
  flowGraph,
  findFlow,
  readFlow,
} from '../state/workflow-files.ts'
import { cardsInFolder, startSessionIn } from '../state/session-folders.ts'
import { findHome } from '../state/cli-home.ts'
import { withStore, withStoreToRead } from '../state/command-context.ts'
import { print, printJson, shortId, warn } from '../present/print.ts'
import { readCommandSetup, driveAndReport } from '../state/drive-session.ts'
import { builtInGraphs, isWorkflowAgent } from '../state/workflow-agents.ts'
import { removeInvisible } from '../../view/invisible.ts'
import { isObject, parseJson } from '../../view/untrusted-json.ts'
import { usdText } from '../../view/usd.ts'
import { workspaceFolder } from '../state/workspace.ts'

const FORMATS = ['mermaid', 'json'] as const

export async function workflowCommand(call: CommandArgs): Promise<number> {
  const [verb, name, ...more] = call.words
  const usage = `Usage: terret workflow [list | show NAME | run NAME [INPUT…] | runs]`
  const named = verb === 'show' || verb === 'run'
  if ((named && name === undefined) || (!named && name !== undefined) || (verb === 'show' && more.length > 0))
    throw new CliError(EXIT.usage, usage)
  if (verb === 'list') return listWorkflows(call)
  if (verb === 'run') return runWorkflow(call, name ?? '', more.join(' ').trim())
  if (verb === 'runs') return listRuns(call)
  return drawWorkflows(call, verb === 'show' ? name : verb)
}

function flowsHere(): Flows {
  const flows = flowFiles(findHome(), workspaceFolder())
  for (const note of flows.notes) warn(clean(note))
  return flows
}

/** Without a name it draws the built-in workflows. */
async function drawWorkflows(call: CommandArgs, name: string | undefined): Promise<number> {
  const given = call.text('format') ?? (call.is('json') ? 'json' : 'mermaid')
  const format = FORMATS.find((each) => each === given)
  if (!format) throw new CliError(EXIT.usage, `--format must be one of: ${FORMATS.join(', ')}, not "${given}".`)
  const { toJson, toMermaid } = await import('../../graphs/index.ts')
  for (const graph of await chooseGraphs(name)) {
    if (format === 'json') printJson(toJson(graph))
    // `%%` begins a comment in Mermaid.
    else print(`%% ${graph.name}`, ...toMermaid(graph).trimEnd().split('\n'))
  }
  return EXIT.ok
}

async function chooseGraphs(name: string | undefined): Promise<readonly Graph[]> {
  const builtIn = await builtInGraphs(workspaceFolder())
  if (name === undefined) return builtIn
  const found = builtIn.filter((graph) => graph.name === name)
  if (found.length > 0) return found
  const names = builtIn.map((graph) => graph.name)
  return [await flowGraph(await readFlow(findFlow(flowsHere(), name, names)))]
}

type WorkflowRow = { readonly name: string; readonly kind: string; readonly from: string; readonly says: string }

/** The row of a file that cannot be used has the reason. */
async function listWorkflows(call: CommandArgs): Promise<number> {
  const builtIn = (await builtInGraphs(workspaceFolder())).map(({ name }): WorkflowRow => {
    return { name, kind: 'report', from: 'built in', says: 'a report from a folder of documents; see `terret start`' }
  })
  const rows = [...builtIn, ...(await Promise.all(flowsHere().files.map(workflowRow)))]
  if (call.is('json')) printJson({ workflows: rows })
  else
    for (const { name, kind, from, says } of rows)
      print(`${name.padEnd(20)} ${kind.padEnd(10)} ${clean(from)}`, `  ${oneLine(says, 300)}`)
  return EXIT.ok
}

async function workflowRow(from: FlowFile): Promise<WorkflowRow> {
  try {
    const flow = await readFlow(from)
    const { description } = await flowGraph(flow)
    return { name: from.id, kind: flow.kind, from: from.file, says: description || 'no description' }
  } catch (error) {
    return { name: from.id, kind: 'wrong', from: from.file, says: exitForError(error).text }
  }
}

async function runWorkflow(call: CommandArgs, name: string, input: string): Promise<number> {
  const builtIn = (await builtInGraphs(workspaceFolder())).map((graph) => graph.name)
  const flows = flowsHere()
  if (builtIn.includes(name) && !flows.files.some(({ id }) => id === name))
    throw new CliError(EXIT.usage, `The workflow "${name}" is run by: terret start TOPIC --documents DIR`)
  const flow = await readFlow(findFlow(flows, name))
  // Errors in the file are reported before anything begins.
  const graph = await flowGraph(flow)
  const isEmpty = removeInvisible(input).text.trim() === ''
  if (flow.kind === 'council' && isEmpty)
    throw new CliError(
      EXIT.usage,
      `EmptyQuestion: a council needs a question. Usage: terret workflow run ${name} QUESTION`,
    )
  if (flow.kind === 'delegation' && isEmpty)
    throw new CliError(EXIT.usage, `EmptyGoal: a delegation needs a goal. Usage: terret workflow run ${name} GOAL`)
  const agent = flowAgent(flow.id)
  return withStore(async (place) => {
    const { folder } = place
    const setup = await readCommandSetup(place, folder, call, { agent })
    const open = async (harness: Harness) => {
      const session = await startSessionIn(place, folder, (as) => harness.open({ ...as, agent }))
      if (!call.is('quiet') && !call.is('json')) warn(`Workflow ${name} ${shortId(session.id)}`)
      return session
    }
    return driveAndReport(place, call, { setup, agent, open, input: workflowInput(graph, input) })
  })
}

/** Input that a person types is text, even if it is a JSON object, which a graph would read as its state. */
function workflowInput({ input: stateOf }: Graph, typed: string): string {
  const isText = typed !== '' && !isObject(parseJson(typed))
  return isText || stateOf === null ? typed : JSON.stringify(stateOf(typed))
}

/** The status of a run for people: a stopped run can be continued, a cancelled one is closed. */
export function workflowStatus({ status, outcome, due }: Pick<Card, 'status' | 'outcome' | 'due'>): string {
  if (status === 'terminated') return outcome === 'completed' ? 'completed' : 'cancelled'
  if (status !== 'idle' || due !== null) return 'running'
  if (outcome === null) return 'running'
  if (outcome === 'completed' || outcome === 'interrupted') return outcome
  return 'failed'
}

function listRuns(call: CommandArgs): Promise<number> {
  return withStoreToRead(async (place) => {
    const cards = (await cardsInFolder(place)).filter(({ agent }) => isWorkflowAgent(agent))
    const rows = cards.map((card) => {
      const { session, agent, cost, at } = card
      return { session, workflow: agent.replace(/^flow-/, ''), status: workflowStatus(card), cost, at }
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
