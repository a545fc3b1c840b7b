// The questions of `terret init` at a terminal: it looks for keys and local servers, lists their models with window and
// price, and tries the chosen one with one call. Nothing is written here.
import { type Endpoint, endpoints, listModels, model } from '../../index.ts'
import { pickOnce } from '../chat/pick-once.ts'
import type { PickItem } from '../chat/picker.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import type { EndpointEntry } from '../state/config.ts'
import type { Environment } from '../state/cli-home.ts'
import { print, warn } from '../present/print.ts'
import { callModelOnce } from './try-model.ts'

export type ChosenModel = {
  readonly name: string
  readonly contextTokens: number | undefined
  /** The host, where it is not at its usual address. */
  readonly endpoints?: Readonly<Record<string, EndpointEntry>>
}

type FoundHost = { readonly name: string; readonly own: Endpoint | null; readonly isLocal: boolean }
type FoundModel = {
  readonly name: string
  readonly host: FoundHost
  readonly contextTokens: number | undefined
  /** Dollars for a million tokens. Null: unknown, or nothing, as on this machine. */
  readonly price: { readonly input: number; readonly output: number } | null
}

/** Null: the person left. */
export async function chooseModel(env: Environment): Promise<ChosenModel | null> {
  const hosts = findHosts(env)
  const keys = hosts.filter(({ isLocal }) => !isLocal).map(({ name }) => name)
  print(
    keys.length === 0 ? 'There is no key of a host in your environment.' : `There are keys for: ${keys.join(', ')}.`,
  )
  print('Asking these hosts, and the usual ports of local servers, for their models…')
  const found = (await Promise.all(hosts.map((host) => modelsOf(host, env)))).flat()
  if (found.length === 0) warn(NOTHING_FOUND)
  const items = [...found.map(modelItem), OFFLINE]
  for (let start: string | null = null; ; ) {
    const value: string | null = await pickOnce({ title: 'Which model?', items, ...(start === null ? {} : { start }) })
    if (value === null) return null
    const chosen = found.find(({ name }) => name === value)
    if (!chosen) return { name: value, contextTokens: undefined }
    if (await tryModel(chosen, env)) return asChosen(chosen)
    start = value
  }
}

const OFFLINE: PickItem = { value: 'offline:any', label: 'offline:any', detail: 'no model: answers by fixed rules' }
const NOTHING_FOUND =
  'None was found. Set a key, such as ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start Ollama, and run it again.'

function asChosen({ name, contextTokens, host: { own } }: FoundModel): ChosenModel {
  return { name, contextTokens, ...(own ? { endpoints: { [own.name]: { baseUrl: own.baseUrl } } } : {}) }
}

/** Hosts whose key is set, and servers that need none, which are on this machine. */
function findHosts(env: Environment): readonly FoundHost[] {
  return Object.values(endpoints).flatMap((each): readonly FoundHost[] => {
    const { name, keys } = each
    if (keys.some((key) => env[key])) return [{ name, own: null, isLocal: false }]
    if (keys.length > 0 || !each.baseUrl.startsWith('http://127.0.0.1:')) return []
    return [{ name, own: name === 'ollama' ? ollamaElsewhere(each, env['OLLAMA_HOST']) : null, isLocal: true }]
  })
}

/** Ollama's own variable: a host, a port, or an address. */
function ollamaElsewhere(ollama: Endpoint, given: string | undefined): Endpoint | null {
  if (!given) return null
  const address = /^https?:\/\//.test(given) ? given : `http://${given.startsWith(':') ? `127.0.0.1${given}` : given}`
  if (!URL.canParse(address)) return null
  const url = new URL(address)
  if (url.port === '' && !/^https?:/.test(given)) url.port = '11434'
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  return { ...ollama, baseUrl: `${url.origin}/v1` }
}

/** Empty if the host does not answer. One that refuses its key is named, because its key is then wrong. */
async function modelsOf(host: FoundHost, env: Environment): Promise<readonly FoundModel[]> {
  const { name, own, isLocal } = host
  try {
    const offer = await listModels(name, { env, ...(own ? { endpoints: [own] } : {}) })
    if (offer.type === 'models')
      return offer.models.map(({ id, contextTokens, price, assumed }) => {
        return { name: `${name}:${id}`, host, contextTokens, price: assumed || isLocal ? null : price }
      })
    if (!isLocal) warn(`${name}: ${oneLine(offer.message, 200)}`)
  } catch (error) {
    if (!isLocal) warn(`${name}: ${oneLine(error instanceof Error ? error.message : '', 200)}`)
  }
  return []
}

function modelItem({ name, contextTokens, price, host }: FoundModel): PickItem {
  const size = contextTokens === undefined ? 'window unknown' : `${Math.round(contextTokens / 1_000)}k tokens`
  const cost = price
    ? `$${price.input} in, $${price.output} out a million`
    : host.isLocal
      ? 'no charge'
      : 'price unknown'
  return { value: name, label: name, detail: `${size} · ${cost}` }
}

const NOT_COUNTED = { inputTokens: 0, outputTokens: 0 }

/** True if it answered. */
async function tryModel({ name, host, price }: FoundModel, env: Environment): Promise<boolean> {
  const began = Date.now()
  print(`Trying ${clean(name)} with one call…`)
  try {
    const made = model(name, { env, ...(host.own ? { endpoints: [host.own] } : {}) })
    const answer = await callModelOnce(made, 'init')
    if (answer.type === 'reply') {
      const { inputTokens, outputTokens } = answer.usage ?? NOT_COUNTED
      const usd = price ? (inputTokens * price.input + outputTokens * price.output) / 1_000_000 : 0
      const cost = price ? `$${usd.toFixed(6)}` : host.isLocal ? 'no charge' : 'price unknown'
      const seconds = ((Date.now() - began) / 1_000).toFixed(1)
      print(`It answered in ${seconds} s: ${countNoun(inputTokens + outputTokens, 'token')}, ${cost}.`)
      return true
    }
    warn(`It does not work: ${oneLine(answer.message, 300)} Choose another one, or leave with Esc.`)
  } catch (error) {
    warn(`It does not work: ${oneLine(error instanceof Error ? error.message : '', 300)}`)
  }
  return false
}
