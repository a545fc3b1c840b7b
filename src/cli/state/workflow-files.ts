// Workflows in files: those of the user's configuration folder, and those of a trusted folder. A file is data: it is read and checked
// here, and becomes a graph with its agents. Nothing of an untrusted folder is read.
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { HarnessOptions, Json, Model, SubagentOptions } from '../../index.ts'
import type { CouncilOptions, Graph, PhasesDefinition } from '../../graphs/index.ts'
import { nonEmptyCheck, nearest, requiredCheck, optionsChecker, textCheck } from '../../options.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'
import { EXIT, CliError } from '../exit.ts'
import { type Home, findHome } from './cli-home.ts'
import { fileErrorCode, hasErrorCode, readPlainFile } from './plain-file.ts'
import { isTrusted } from './trusted-folders.ts'
import { terretCommand } from '../present/print.ts'

const KINDS = ['phases', 'council', 'delegation'] as const
const FILES_MAX = 200
const ID = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?$/
/** The built-in workflows. */
const BUILT_IN = ['report', 'report_with_model']
/** The agents of these sessions have this prefix, so they cannot be confused with other agents. */
const PREFIX = 'flow-'
/** The endings of the names of a workflow's agents. */
const CHILD = /(?:--.*|_seat_[a-e]|_chair|_chair_again)$/

/** A workflow file that has not been read yet. */
export type FlowFile = {
  readonly id: string
  readonly file: string
  readonly of: 'user' | 'folder'
  readonly within: string
}
export type Flow = FlowFile & { readonly kind: (typeof KINDS)[number]; readonly definition: JsonObject }
export type Flows = { readonly files: readonly FlowFile[]; readonly notes: readonly string[] }

/** The agent of a workflow from a file, also for the agent of one of its children. Null for every other agent. */
export function flowOf(agent: string): string | null {
  return agent.startsWith(PREFIX) ? agent.replace(CHILD, '') : null
}

export function flowAgent(id: string): string {
  return `${PREFIX}${id}`
}

/** All workflow files. A user's file wins over one of the folder with the same name. */
export function flowFiles(home: Home, folder: string): Flows {
  const own = flowFilesIn(join(home.config, 'workflows'), 'user', home.config)
  const place = join(folder, '.terret', 'workflows')
  if (!isTrusted(home, folder)) {
    const there = lstatSync(place, { throwIfNoEntry: false }) !== undefined
    const note = `${folder} is not trusted: its .terret/workflows is not read. \`${terretCommand`trust`}\` changes that.`
    return { files: own, notes: there ? [note] : [] }
  }
  const theirs = flowFilesIn(place, 'folder', folder)
  const hidden = theirs.filter(({ id }) => own.some((file) => file.id === id))
  const notes = hidden.map(({ file, id }) => `${file} is not used: your own workflow "${id}" has the same name.`)
  return { files: [...own, ...theirs.filter((file) => !hidden.includes(file))], notes }
}

function flowFilesIn(place: string, of: FlowFile['of'], within: string): readonly FlowFile[] {
  let names: readonly string[]
  try {
    names = readdirSync(place).sort()
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return []
    throw new CliError(EXIT.config, `${place} cannot be read (${fileErrorCode(error)}). Make it a readable folder.`)
  }
  const found = names.filter((name) => /\.(?:json|md)$/.test(name))
  if (found.length > FILES_MAX)
    throw new CliError(EXIT.config, `${place} has ${found.length} workflows, and may have ${FILES_MAX}. Remove some.`)
  const files = found.map((name) => ({ id: name.replace(/\.(?:json|md)$/, ''), file: join(place, name), of, within }))
  const twice = files.find(({ id }, i) => files.findIndex((other) => other.id === id) < i)
  if (twice) throw new CliError(EXIT.config, `${place} has two files of workflow "${twice.id}". Remove one.`)
  return files
}

/** Finds a file by the name that people type. */
export function findFlow({ files }: Flows, id: string, builtIn: readonly string[] = []): FlowFile {
  const found = files.find((file) => file.id === id)
  if (found) return found
  const names = [...builtIn, ...files.map((file) => file.id)]
  const near = nearest(id, names)
  const choice = names.length === 0 ? 'None is defined.' : `Choose one of: ${names.join(', ')}.`
  const hint = near === null ? choice : `Did you mean "${near}"?`
  throw new CliError(EXIT.missing, `There is no workflow "${id}". ${hint}`)
}

/** Reads a file and checks the fields that all kinds share. */
export async function readFlow(from: FlowFile): Promise<Flow> {
  const { id, file, of, within } = from
  const bad = (why: string): CliError => new CliError(EXIT.config, `${file}: ${why}`)
  if (!ID.test(id) || id.includes('--') || CHILD.test(id))
    throw bad(`"${id}" cannot be the name of a workflow. Use 1 to 40 letters, digits, "_" or single "-".`)
  if (BUILT_IN.includes(id))
    throw bad(`"${id}" is the name of a workflow that is built in. Give the file another name.`)
  const source = readPlainFile(file, of === 'folder' ? within : undefined)
  if (source === null)
    throw new CliError(EXIT.missing, `There is no file ${file} any more. Put it back, or begin anew.`)
  const value = file.endsWith('.md') ? await parseMarkdown(source, bad) : parseJson(source, bad)
  const { kind = 'phases', ...definition } = value
  const known = KINDS.find((each) => each === kind)
  if (known === undefined) throw bad(`"kind" must be ${KINDS.join(', ')}, not ${JSON.stringify(kind)?.slice(0, 60)}.`)
  if (definition['id'] !== undefined && definition['id'] !== id)
    throw bad(`"id" must be the name of the file, "${id}". Leave it out, or rename the file.`)
  return { ...from, kind: known, definition: { ...definition, id } }
}

function parseJson(source: string, bad: (why: string) => CliError): JsonObject {
  try {
    const value: unknown = JSON.parse(source)
    if (isObject(value)) return value
  } catch (error) {
    throw bad(`it is no JSON: ${error instanceof Error ? error.message : ''}.`)
  }
  throw bad('it must be a JSON object.')
}

/** The definition stands between two lines of dashes. A section `## NAME` below is the description of that phase. */
async function parseMarkdown(source: string, bad: (why: string) => CliError): Promise<JsonObject> {
  const [, front = null, body = ''] = /^---[ \t]*\r?\n([\s\S]*?)^---[ \t]*\r?$([\s\S]*)/m.exec(source) ?? []
  if (front === null) throw bad('it must begin with the definition between two lines "---".')
  const { parse } = await import('yaml')
  let value: unknown
  try {
    value = parse(front, { schema: 'core', logLevel: 'error' })
  } catch (error) {
    throw bad(`its head is no YAML: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`)
  }
  if (!isObject(value)) throw bad('its head must be "name: value" lines.')
  if (value['kind'] === 'council') return body.trim() === '' ? value : { instructions: body.trim(), ...value }
  const phases = (Array.isArray(value['phases']) ? value['phases'] : []) as readonly Json[]
  const texts = new Map(body.split(/^## +/m).slice(1).map(splitSection))
  for (const name of texts.keys())
    if (!phases.some((phase) => isObject(phase) && phase['name'] === name))
      throw bad(
        `UnknownPhase: the section "## ${name}" is of no phase. Name it like one, or use "###" inside a section.`,
      )
  const told = phases.map((phase) => {
    const name = isObject(phase) ? phase['name'] : undefined
    const text = typeof name === 'string' ? texts.get(name) : undefined
    return isObject(phase) && text !== undefined ? { description: text, ...phase } : phase
  })
  return value['phases'] === undefined ? value : { ...value, phases: told }
}

function splitSection(section: string): readonly [string, string] {
  const end = section.indexOf('\n')
  return end < 0 ? [section.trim(), ''] : [section.slice(0, end).trim(), section.slice(end).trim()]
}

/** An agent that is defined in a workflow file. */
type FileAgent = { readonly description?: string; readonly instructions: string; readonly model?: string }
const checkAgent = optionsChecker<FileAgent>('an agent', {
  description: textCheck,
  instructions: requiredCheck(nonEmptyCheck, 'Say how it works.'),
  model: nonEmptyCheck,
})

/** Makes the model with this name: one with its key to drive a session, or one that is never called. */
export type ModelOf = (name: string, flow: Flow) => Promise<string | Model>
type FlowParts = Required<Pick<HarnessOptions, 'graphs' | 'subagents'>>

/** The graph of a workflow, and its agents. Errors in the definition name the file. */
export async function flowParts(flow: Flow, modelOf: ModelOf): Promise<FlowParts> {
  const { file, kind } = flow
  try {
    switch (kind) {
      case 'phases':
        return await phasesParts(flow, modelOf)
      case 'council':
        return await councilParts(flow, modelOf)
      case 'delegation':
        return await delegationParts(flow, modelOf)
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    throw new CliError(EXIT.config, `${file}: ${error.message}`)
  }
}

async function phasesParts(flow: Flow, modelOf: ModelOf): Promise<FlowParts> {
  const { phasesAgents, phasesGraph } = await import('../../graphs/index.ts')
  const { agents: own = {}, ...rest } = flow.definition
  if (!isObject(own)) throw new CliError(EXIT.config, '"agents" must be an object: agents by their names.')
  const agents: Record<string, SubagentOptions> = {}
  for (const [name, agent] of Object.entries(own)) {
    checkAgent(agent, `agent "${name}"`)
    const { description = '', instructions, model } = agent as FileAgent
    agents[name] = { description, instructions, ...(model ? { model: await modelOf(model, flow) } : {}) }
  }
  // Checked by phasesGraph, like every definition.
  const definition = rest as unknown as PhasesDefinition
  const options = { agents, name: flowAgent(flow.id) }
  return { graphs: [phasesGraph(definition, options)], subagents: phasesAgents(definition, options) }
}

type Delegation = { readonly planner?: string; readonly executor?: string; readonly reviewer?: string }
const checkDelegation = optionsChecker<Delegation>('a delegation', {
  planner: nonEmptyCheck,
  executor: nonEmptyCheck,
  reviewer: nonEmptyCheck,
})

/** The models that plan, work and review: the default model of the folder if none is named. */
async function delegationParts(flow: Flow, modelOf: ModelOf): Promise<FlowParts> {
  const { delegateAgents, delegateGraph } = await import('../../graphs/index.ts')
  const { id: _id, name: _name, description: _description, ...models } = flow.definition
  checkDelegation(models)
  const { planner, executor, reviewer } = models as Delegation
  const named = { delegate_planner: planner, delegate_executor: executor, delegate_reviewer: reviewer }
  const name = flowAgent(flow.id)
  // The prefix lets a process that finds one of these agents alone know the file.
  const prefix = `${name}--`
  const subagents: Record<string, SubagentOptions> = {}
  for (const [of, agent] of Object.entries<SubagentOptions>(delegateAgents)) {
    const model = named[of as keyof typeof named]
    const made = model === undefined ? agent : { ...agent, model: await modelOf(model, flow) }
    subagents[of.replace('delegate_', prefix)] = made
  }
  return { graphs: [delegateGraph({ name, prefix })], subagents }
}

/** The name of a model. In a file a model is its name. */
function modelName(model: Model | string): string {
  return typeof model === 'string' ? model : model.name
}

async function councilParts(flow: Flow, modelOf: ModelOf): Promise<FlowParts> {
  const { councilAgents, councilGraph } = await import('../../graphs/index.ts')
  const { id: _id, ...rest } = flow.definition
  const given = { ...rest, name: flowAgent(flow.id) } as unknown as CouncilOptions
  // Checked before models are made, because two models with one name are two objects.
  const graph = councilGraph(given)
  const { seats, chair, fallback = chair } = given
  const made = {
    ...given,
    seats: await Promise.all(seats.map((seat) => modelOf(modelName(seat), flow))),
    chair: await modelOf(modelName(chair), flow),
    fallback: await modelOf(modelName(fallback), flow),
  }
  return { graphs: [graph], subagents: councilAgents(made) }
}

/** For commands that call no model. */
export const offlineModel: ModelOf = async () => (await import('../../index.ts')).offline()

/** The workflow of a session, from its current file. `agent` is the result of `flowOf`. */
export async function readAgentFlow(agent: string, folder: string): Promise<Flow> {
  const home = findHome()
  const id = agent.slice(PREFIX.length)
  const { files, notes } = flowFiles(home, folder)
  const found = files.find((file) => file.id === id)
  if (found) return readFlow(found)
  const why = notes.length > 0 ? ` ${notes.join(' ')}` : ''
  const places = `${join(home.config, 'workflows')} or ${join(folder, '.terret', 'workflows')}`
  throw new CliError(
    EXIT.config,
    `The file of workflow "${id}" is not there any more: put ${id}.json or ${id}.md back into ${places}.${why}`,
  )
}

/** The graph alone, for drawing. */
export async function flowGraph(flow: Flow): Promise<Graph> {
  const { graphs } = await flowParts(flow, offlineModel)
  return graphs[0] as Graph
}
