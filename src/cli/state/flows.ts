// Workflows in files: those of the user's configuration folder, and those of a trusted folder. A file is data: it is read and checked
// here, and becomes a graph with its agents. Nothing of an untrusted folder is read.
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { HarnessOptions, Json, Model, SubagentOptions } from '../../index.ts'
import type { CouncilOptions, Graph, PhasesDefinition } from '../../graphs/index.ts'
import { filled, nearest, needed, optionsOf, text } from '../../options.ts'
import { isObject, type JsonObject } from '../../view/json.ts'
import { EXIT, Refusal } from '../exit.ts'
import { type Home, homeOf } from './home.ts'
import { codeOf, isErrno, readPlain } from './plain-file.ts'
import { isTrusted } from './trust.ts'
import { typed } from '../present/print.ts'

const KINDS = ['phases', 'council', 'delegation'] as const
const FILES_MAX = 200
const ID = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?$/
/** The workflows that come with the command line. */
const BUILT_IN = ['report', 'report_with_model']
/** Sessions of these workflows have agents with this beginning, so no other agent is taken for one. */
const PREFIX = 'flow-'
/** What follows the name of the workflow in the names of its agents. */
const CHILD = /(?:--.*|_seat_[a-e]|_chair|_chair_again)$/

/** A file of a workflow that has not been read yet. */
export type FlowFile = {
  readonly id: string
  readonly file: string
  readonly of: 'user' | 'folder'
  readonly within: string
}
export type Flow = FlowFile & { readonly kind: (typeof KINDS)[number]; readonly definition: JsonObject }
export type Flows = { readonly files: readonly FlowFile[]; readonly notes: readonly string[] }

/** The agent of a workflow from a file; that of one of its children gives the same. Null for every other agent. */
export function flowOf(agent: string): string | null {
  return agent.startsWith(PREFIX) ? agent.replace(CHILD, '') : null
}

export function flowAgent(id: string): string {
  return `${PREFIX}${id}`
}

/** The files there are. The user's wins over one of the folder with the same name. */
export function flowFiles(home: Home, folder: string): Flows {
  const own = filesIn(join(home.config, 'workflows'), 'user', home.config)
  const place = join(folder, '.terret', 'workflows')
  if (!isTrusted(home, folder)) {
    const there = lstatSync(place, { throwIfNoEntry: false }) !== undefined
    const note = `${folder} is not trusted: its .terret/workflows is not read. \`${typed`trust`}\` changes that.`
    return { files: own, notes: there ? [note] : [] }
  }
  const theirs = filesIn(place, 'folder', folder)
  const hidden = theirs.filter(({ id }) => own.some((file) => file.id === id))
  const notes = hidden.map(({ file, id }) => `${file} is not used: your own workflow "${id}" has the same name.`)
  return { files: [...own, ...theirs.filter((file) => !hidden.includes(file))], notes }
}

function filesIn(place: string, of: FlowFile['of'], within: string): readonly FlowFile[] {
  let names: readonly string[]
  try {
    names = readdirSync(place).sort()
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return []
    throw new Refusal(EXIT.config, `${place} cannot be read (${codeOf(error)}). Make it a readable folder.`)
  }
  const found = names.filter((name) => /\.(?:json|md)$/.test(name))
  if (found.length > FILES_MAX)
    throw new Refusal(EXIT.config, `${place} has ${found.length} workflows, and may have ${FILES_MAX}. Remove some.`)
  const files = found.map((name) => ({ id: name.replace(/\.(?:json|md)$/, ''), file: join(place, name), of, within }))
  const twice = files.find(({ id }, i) => files.findIndex((other) => other.id === id) < i)
  if (twice) throw new Refusal(EXIT.config, `${place} has two files of workflow "${twice.id}". Remove one.`)
  return files
}

/** By the name people type. */
export function flowNamed({ files }: Flows, id: string, builtIn: readonly string[] = []): FlowFile {
  const found = files.find((file) => file.id === id)
  if (found) return found
  const names = [...builtIn, ...files.map((file) => file.id)]
  const near = nearest(id, names)
  const choice = names.length === 0 ? 'None is defined.' : `Choose one of: ${names.join(', ')}.`
  const hint = near === null ? choice : `Did you mean "${near}"?`
  throw new Refusal(EXIT.missing, `There is no workflow "${id}". ${hint}`)
}

/** Reads and checks a file up to what its kind says about the rest. */
export async function readFlow(from: FlowFile): Promise<Flow> {
  const { id, file, of, within } = from
  const bad = (why: string): Refusal => new Refusal(EXIT.config, `${file}: ${why}`)
  if (!ID.test(id) || id.includes('--') || CHILD.test(id))
    throw bad(`"${id}" cannot be the name of a workflow. Use 1 to 40 letters, digits, "_" or single "-".`)
  if (BUILT_IN.includes(id))
    throw bad(`"${id}" is the name of a workflow that is built in. Give the file another name.`)
  const source = readPlain(file, of === 'folder' ? within : undefined)
  if (source === null) throw new Refusal(EXIT.missing, `There is no file ${file} any more. Put it back, or begin anew.`)
  const value = file.endsWith('.md') ? await fromMarkdown(source, bad) : fromJson(source, bad)
  const { kind = 'phases', ...definition } = value
  const known = KINDS.find((each) => each === kind)
  if (known === undefined) throw bad(`"kind" must be ${KINDS.join(', ')}, not ${JSON.stringify(kind)?.slice(0, 60)}.`)
  if (definition['id'] !== undefined && definition['id'] !== id)
    throw bad(`"id" must be the name of the file, "${id}". Leave it out, or rename the file.`)
  return { ...from, kind: known, definition: { ...definition, id } }
}

function fromJson(source: string, bad: (why: string) => Refusal): JsonObject {
  try {
    const value: unknown = JSON.parse(source)
    if (isObject(value)) return value
  } catch (error) {
    throw bad(`it is no JSON: ${error instanceof Error ? error.message : ''}.`)
  }
  throw bad('it must be a JSON object.')
}

/** The definition stands between two lines of dashes. A section `## NAME` below is the description of that phase. */
async function fromMarkdown(source: string, bad: (why: string) => Refusal): Promise<JsonObject> {
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
  const texts = new Map(body.split(/^## +/m).slice(1).map(sectionOf))
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

function sectionOf(section: string): readonly [string, string] {
  const end = section.indexOf('\n')
  return end < 0 ? [section.trim(), ''] : [section.slice(0, end).trim(), section.slice(end).trim()]
}

/** An agent that a file brings along. */
type FileAgent = { readonly description?: string; readonly instructions: string; readonly model?: string }
const checkAgent = optionsOf<FileAgent>('an agent', {
  description: text,
  instructions: needed(filled, 'Say how it works.'),
  model: filled,
})

/** Makes the model of a name: with its key to drive a session, or one that is never called. */
export type ModelOf = (name: string, flow: Flow) => Promise<string | Model>
type Parts = Required<Pick<HarnessOptions, 'graphs' | 'subagents'>>

/** The graph of a workflow, and its agents. What is wrong with its definition is said with the file. */
export async function flowParts(flow: Flow, modelOf: ModelOf): Promise<Parts> {
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
    throw new Refusal(EXIT.config, `${file}: ${error.message}`)
  }
}

async function phasesParts(flow: Flow, modelOf: ModelOf): Promise<Parts> {
  const { phasesAgents, phasesGraph } = await import('../../graphs/index.ts')
  const { agents: own = {}, ...rest } = flow.definition
  if (!isObject(own)) throw new Refusal(EXIT.config, '"agents" must be an object: agents by their names.')
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
const checkDelegation = optionsOf<Delegation>('a delegation', { planner: filled, executor: filled, reviewer: filled })

/** Which model plans, works and reviews: the folder's own where none is named. */
async function delegationParts(flow: Flow, modelOf: ModelOf): Promise<Parts> {
  const { delegateAgents, delegateGraph } = await import('../../graphs/index.ts')
  const { id: _id, name: _name, description: _description, ...models } = flow.definition
  checkDelegation(models)
  const { planner, executor, reviewer } = models as Delegation
  const named = { delegate_planner: planner, delegate_executor: executor, delegate_reviewer: reviewer }
  const name = flowAgent(flow.id)
  // So a process that finds one of its agents alone knows the file.
  const prefix = `${name}--`
  const subagents: Record<string, SubagentOptions> = {}
  for (const [of, agent] of Object.entries<SubagentOptions>(delegateAgents)) {
    const model = named[of as keyof typeof named]
    const made = model === undefined ? agent : { ...agent, model: await modelOf(model, flow) }
    subagents[of.replace('delegate_', prefix)] = made
  }
  return { graphs: [delegateGraph({ name, prefix })], subagents }
}

/** In a file a model is a name. */
function nameOf(model: Model | string): string {
  return typeof model === 'string' ? model : model.name
}

async function councilParts(flow: Flow, modelOf: ModelOf): Promise<Parts> {
  const { councilAgents, councilGraph } = await import('../../graphs/index.ts')
  const { id: _id, ...rest } = flow.definition
  const given = { ...rest, name: flowAgent(flow.id) } as unknown as CouncilOptions
  // Checked before models are made, since two of one name are two objects.
  const graph = councilGraph(given)
  const { seats, chair, fallback = chair } = given
  const made = {
    ...given,
    seats: await Promise.all(seats.map((seat) => modelOf(nameOf(seat), flow))),
    chair: await modelOf(nameOf(chair), flow),
    fallback: await modelOf(nameOf(fallback), flow),
  }
  return { graphs: [graph], subagents: councilAgents(made) }
}

/** For commands that call no model. */
export const unused: ModelOf = async () => (await import('../../index.ts')).offline()

/** The workflow of a session, as its file is now. `agent` is what `flowOf` returned. */
export async function flowFor(agent: string, folder: string): Promise<Flow> {
  const home = homeOf()
  const id = agent.slice(PREFIX.length)
  const { files, notes } = flowFiles(home, folder)
  const found = files.find((file) => file.id === id)
  if (found) return readFlow(found)
  const why = notes.length > 0 ? ` ${notes.join(' ')}` : ''
  const places = `${join(home.config, 'workflows')} or ${join(folder, '.terret', 'workflows')}`
  throw new Refusal(
    EXIT.config,
    `The file of workflow "${id}" is not there any more: put ${id}.json or ${id}.md back into ${places}.${why}`,
  )
}

/** For drawing. */
export async function flowGraph(flow: Flow): Promise<Graph> {
  const { graphs } = await flowParts(flow, unused)
  return graphs[0] as Graph
}
