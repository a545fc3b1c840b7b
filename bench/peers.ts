// `npm run bench -- --peers`: the same turns through two packages that others publish, side by side with ours in one run: pi's agent
// core, the fastest peer, and the AI SDK. They are installed in a temporary folder and are no part of this repository.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { CALLS, turn } from './fanout.ts'
import { type Case, cpuMs, type Family, type Figure, type Median } from './family.ts'
import { harness as loopCase, Marks, TURNS } from './loop.ts'
import { harness as manyCase, measured, SESSIONS, TURNS as FEW } from './many.ts'
import { argsOf, resultOf } from './turn.ts'

/** The versions of the proof that the goals come from; newer ones of pi need Node 22. */
const PACKAGES = ['@earendil-works/pi-agent-core@0.87.1', 'ai@6.0.326']

const fixture: Case = async (folder) => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES]
  await promisify(execFile)(npm, args, { cwd: folder })
  return {}
}

/** What is used of them, as they publish it. */
type Pi = {
  readonly Agent: new (
    options: object,
  ) => { prompt(text: string): Promise<void>; readonly state: { readonly messages: readonly unknown[] } }
}
type PiAi = { readonly AssistantMessageEventStream: new () => { push(event: object): void } }
type TypeBox = {
  readonly Type: { Object(of: object): object; String(): object; Number(): object }
}
type AiSdk = {
  readonly generateText: (options: object) => Promise<{ readonly steps: readonly unknown[] }>
  readonly stepCountIs: (n: number) => unknown
  readonly jsonSchema: (schema: object) => unknown
  readonly tool: (options: object) => unknown
}

/** From inside the folder, where the package is. */
async function load<T>(folder: string, name: string): Promise<T> {
  const file = join(folder, `${name.replace(/\W/g, '-')}.js`)
  writeFileSync(file, `export * from '${name}'\n`)
  return (await import(pathToFileURL(file).href)) as T
}

const USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 }
const COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
const MODEL = {
  id: 'scripted',
  name: 'scripted',
  api: 'openai-completions',
  provider: 'openai',
  baseUrl: '',
  reasoning: false,
  input: ['text'],
  cost: COST,
  contextWindow: 1_000_000,
  maxTokens: 1_000,
}

/** What the model says at its n-th call: arguments for as many calls as it makes, or null for the end. */
type Script = (n: number) => readonly object[] | null | Promise<null>

/** Makes an agent of pi's for one script, with the tool that every bench calls. */
async function piOf(folder: string): Promise<(script: Script) => InstanceType<Pi['Agent']>> {
  const { Agent } = await load<Pi>(folder, '@earendil-works/pi-agent-core')
  const { AssistantMessageEventStream } = await load<PiAi>(folder, '@earendil-works/pi-ai')
  const { Type } = await load<TypeBox>(folder, 'typebox')
  const parameters = Type.Object({
    path: Type.String(),
    query: Type.String(),
    limit: Type.Number(),
    offset: Type.Number(),
  })
  const execute = async (_id: string, args: unknown) => ({ content: [{ type: 'text', text: resultOf(args) }] })
  const lookup = { name: 'lookup', label: 'Lookup', description: 'Look something up', parameters, execute }
  return (script) => {
    let n = 0
    const streamFn = () => {
      const stream = new AssistantMessageEventStream()
      const said = async (): Promise<void> => {
        const calls = await script(n)
        const content = calls?.map((args, i) => ({
          type: 'toolCall',
          id: `call_${n}_${i}`,
          name: 'lookup',
          arguments: args,
        }))
        const stopReason = content ? 'toolUse' : 'stop'
        const from = { api: MODEL.api, provider: MODEL.provider, model: MODEL.id, usage: { ...USAGE, cost: COST } }
        const parts = content ?? [{ type: 'text', text: 'done' }]
        const message = { role: 'assistant', content: parts, ...from, stopReason, timestamp: Date.now() }
        n += 1
        stream.push({ type: 'start', partial: message })
        stream.push({ type: 'done', reason: stopReason, message })
      }
      void said()
      return stream
    }
    return new Agent({ streamFn, initialState: { systemPrompt: '', model: MODEL, tools: [lookup] } })
  }
}

const pi: Case = async (folder) => {
  const agentOf = await piOf(folder)
  const marks = new Marks()
  const agent = agentOf((n) => {
    marks.take(n)
    return n < TURNS ? [argsOf(n)] : null
  })
  await agent.prompt('go')
  if (agent.state.messages.length < TURNS * 2) throw new Error(`${agent.state.messages.length} messages`)
  return marks.sample()
}

const piWide: Case = async (folder) => {
  const agentOf = await piOf(folder)
  const begun = cpuMs()
  const agent = agentOf((n) => (n === 0 ? Array.from({ length: CALLS }, (_, i) => argsOf(i)) : null))
  await agent.prompt('go')
  if (agent.state.messages.length < CALLS) throw new Error(`${agent.state.messages.length} messages`)
  return { us: ((cpuMs() - begun) * 1_000) / CALLS }
}

const piMany: Case = async (folder) => {
  const agentOf = await piOf(folder)
  return measured(async (barrier) => {
    const agents = Array.from({ length: SESSIONS }, () =>
      agentOf((n) => (n < FEW ? [argsOf(n)] : (barrier?.arrive().then(() => null) ?? null))),
    )
    await Promise.all(agents.map((agent) => agent.prompt('go')))
  })
}

const wide: Case = async () => ({ us: await turn() })

/** The AI SDK's loop over a model of its own kind. Its first 200 turns only: what a turn costs grows with those before it. */
const aiSdk: Case = async (folder) => {
  const { generateText, stepCountIs, jsonSchema, tool } = await load<AiSdk>(folder, 'ai')
  const number = { type: 'number' }
  const properties = { path: { type: 'string' }, query: { type: 'string' }, limit: number, offset: number }
  const inputSchema = jsonSchema({ type: 'object', properties, required: Object.keys(properties) })
  const lookup = tool({
    description: 'Look something up',
    inputSchema,
    execute: async (args: unknown) => resultOf(args),
  })
  const usage = { inputTokens: { total: 0 }, outputTokens: { total: 0 } }
  let n = 0
  const model = {
    specificationVersion: 'v3',
    provider: 'scripted',
    modelId: 'scripted',
    supportedUrls: {},
    doGenerate: async () => {
      const call = { type: 'tool-call', toolCallId: `call_${n}`, toolName: 'lookup', input: JSON.stringify(argsOf(n)) }
      n += 1
      const content = n <= 200 ? [call] : [{ type: 'text', text: 'done' }]
      return { content, finishReason: { unified: n <= 200 ? 'tool-calls' : 'stop' }, usage, warnings: [] }
    },
  }
  const begun = cpuMs()
  const { steps } = await generateText({ model, tools: { lookup }, prompt: 'go', stopWhen: stepCountIs(1_000) })
  if (steps.length !== 201) throw new Error(`${steps.length} steps`)
  return { first200: (cpuMs() - begun) / 200 }
}

/** How much ours costs of what a peer costs. */
function beside(name: string, target: number, ours: string, theirs: string, unit: string): Figure {
  const shown = (value: number): string => String(Number(value.toPrecision(3)))
  return {
    name,
    unit: '× the peer',
    target,
    value: (median: Median) => median(ours) / median(theirs),
    floor: () => 1,
    note: (median: Median) => `${shown(median(ours))} beside ${shown(median(theirs))} ${unit}`,
  }
}

export const peers: Family = {
  repetitions: 5,
  mayFail: true,
  fixture,
  cases: { loop: loopCase, pi, wide, piWide, many: manyCase, piMany, aiSdk },
  figures: [
    beside('pi.cold', 0.7, 'loop.first200', 'pi.first200', 'CPU ms a turn, first 200'),
    beside('pi.1000', 0.7, 'loop.first1000', 'pi.first1000', 'CPU ms a turn, first 1,000'),
    beside('pi.all', 0.7, 'loop.all', 'pi.all', 'CPU ms, first 6,000 turns'),
    beside('pi.steady', 0.7, 'loop.steady', 'pi.steady', 'CPU ms a turn, turns 5,001 to 6,000'),
    beside('pi.fanout', 0.8, 'wide.us', 'piWide.us', 'CPU µs a call, first thing a process does'),
    { ...beside('pi.many', 1.2, 'many.perSecond', 'piMany.perSecond', 'turns a CPU second'), atLeast: true },
    beside('pi.heap', 1.2, 'many.heap', 'piMany.heap', 'KB a session, all open'),
    beside('aisdk.cold', 0.7, 'loop.first200', 'aiSdk.first200', 'CPU ms a turn, first 200'),
  ],
}
