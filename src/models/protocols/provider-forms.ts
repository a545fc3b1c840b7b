// How each protocol writes the tools that its provider runs, which host has which, and which are refused.
// provider-tools.ts names the tools.
import type { Frozen, Json } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Request, ToolSchema } from '../../ports/model.ts'
import type { ModelTarget } from './protocol.ts'
import { CHECKS, type DomainFilter, type FileSearchUse, type ProviderTool } from './provider-tools.ts'
import type { WebFetchUse, WebSearchUse } from './provider-tools.ts'

type ToolWriter = (tool: ProviderTool) => Json
/** The form of a tool in one protocol. `lacks` names the options that this form cannot express. */
type ToolForm = Frozen<{ write: ToolWriter; lacks: readonly string[]; beta?: string; include?: string }>

const MESSAGES: Partial<Record<ProviderTool['type'], ToolForm>> = {
  web_search: {
    lacks: ['contextSize'],
    write: (tool) => {
      const { location, ...rest } = tool as WebSearchUse
      const place = location && { type: 'approximate', ...location }
      return {
        type: 'web_search_20250305',
        name: 'web_search',
        ...useFields(rest),
        ...optionalField('user_location', place),
      }
    },
  },
  web_fetch: {
    lacks: [],
    beta: 'web-fetch-2025-09-10',
    write: (tool) => {
      const { contentTokensMax, citations, ...rest } = tool as WebFetchUse
      const named = { type: 'web_fetch_20250910', name: 'web_fetch' }
      const cited = citations === undefined ? undefined : { enabled: citations }
      return {
        ...named,
        ...useFields(rest),
        ...optionalField('citations', cited),
        ...optionalField('max_content_tokens', contentTokensMax),
      }
    },
  },
  code_execution: {
    lacks: [],
    beta: 'code-execution-2025-08-25',
    write: () => ({ type: 'code_execution_20250825', name: 'code_execution' }),
  },
}

const RESPONSES: Partial<Record<ProviderTool['type'], ToolForm>> = {
  web_search: {
    lacks: ['maxUses'],
    write: (tool) => {
      const { contextSize, location, allowedDomains, blockedDomains } = tool as WebSearchUse
      const filters = {
        ...optionalField('allowed_domains', allowedDomains),
        ...optionalField('blocked_domains', blockedDomains),
      }
      return {
        type: 'web_search',
        ...(Object.keys(filters).length > 0 ? { filters } : {}),
        ...optionalField('search_context_size', contextSize),
        ...optionalField('user_location', location && { type: 'approximate', ...location }),
      }
    },
  },
  code_execution: {
    lacks: [],
    include: 'code_interpreter_call.outputs',
    write: () => ({ type: 'code_interpreter', container: { type: 'auto' } }),
  },
  file_search: {
    lacks: [],
    include: 'file_search_call.results',
    write: (tool) => {
      const { vectorStores, resultsMax } = tool as FileSearchUse
      return { type: 'file_search', vector_store_ids: vectorStores, ...optionalField('max_num_results', resultsMax) }
    },
  },
}

const FORMS: Readonly<Record<string, typeof MESSAGES>> = { messages: MESSAGES, responses: RESPONSES }

function useFields({ maxUses, allowedDomains, blockedDomains }: WebSearchUse | WebFetchUse): {
  readonly [key: string]: Json
} {
  return {
    ...optionalField('max_uses', maxUses),
    ...optionalField('allowed_domains', allowedDomains),
    ...optionalField('blocked_domains', blockedDomains),
  }
}

function optionalField(name: string, value: Json | undefined): { readonly [key: string]: Json } {
  return value === undefined ? {} : { [name]: value }
}

/** Refuses a tool that the host does not have, or an option that its form cannot express. */
export function checkProviderTools(tools: unknown, target: ModelTarget, protocol: string): void {
  const host = `${target.endpoint}:${target.model}`
  if (!Array.isArray(tools)) throw invalidConfig(`providerTools of ${host} must be a list, such as [webSearch()].`)
  const seen = new Set<string>()
  for (const tool of tools as readonly (ProviderTool | null | undefined)[]) {
    const type = tool?.type
    if (type === undefined) throw invalidConfig(`providerTools of ${host} takes what webSearch() and the like return.`)
    if (seen.has(type)) throw invalidConfig(`providerTools of ${host} lists ${type} twice. List it once.`)
    seen.add(type)
    const form = target.quirks.providerTools?.includes(type) ? FORMS[protocol]?.[type] : undefined
    if (!form)
      throw invalidConfig(
        `${host} has no ${type} of its own: leave it out of providerTools, or use ${INSTEAD[type] ?? 'another host'}.`,
      )
    const { type: _, ...options } = tool as ProviderTool & Readonly<Record<string, unknown>>
    CHECKS[type](options, `${type} in providerTools`)
    const odd = form.lacks.find((name) => options[name] !== undefined)
    if (odd !== undefined) throw invalidConfig(`The ${type} of ${host} takes no \`${odd}\`: leave it out.`)
    const { allowedDomains, blockedDomains } = tool as DomainFilter
    if (allowedDomains && blockedDomains)
      throw invalidConfig(`The ${type} of ${host} takes \`allowedDomains\` or \`blockedDomains\`, not both.`)
  }
}

const INSTEAD: Readonly<Record<string, string>> = {
  web_search: 'webSearchTool({ endpoint }) as a tool of the agent',
  web_fetch: 'webFetchTool() as a tool of the agent',
}

function invalidConfig(message: string): Fault {
  return new Fault('invalid_config', message)
}

/** The fields of a request for its provider's tools. */
type WrittenTools = Frozen<{ json: readonly string[]; betas: readonly string[]; include: readonly string[] }>
const NONE: WrittenTools = { json: [], betas: [], include: [] }
const writtenTools = new WeakMap<readonly ProviderTool[], WrittenTools>()

/** Written once, since every request has the same tools. */
export function writeProviderTools({ settings }: ModelTarget, protocol: 'messages' | 'responses'): WrittenTools {
  const tools = settings.providerTools
  if (tools === undefined) return NONE
  const known = writtenTools.get(tools)
  if (known) return known
  const forms = tools.flatMap((tool) => {
    const form = FORMS[protocol]?.[tool.type]
    return form ? [{ ...form, json: JSON.stringify(form.write(tool)) }] : []
  })
  const made = {
    json: forms.map(({ json }) => json),
    betas: forms.flatMap(({ beta }) => beta ?? []),
    include: forms.flatMap(({ include }) => include ?? []),
  }
  writtenTools.set(tools, made)
  return made
}

/**
 * Leaves out tools of ours that the provider has too: a model must not have to choose between two tools of one name.
 */
export function leaveOutServed(request: Request, served: readonly ProviderTool[] = []): Request {
  const isServed = ({ name }: ToolSchema): boolean => served.some(({ type }) => type === name)
  return served.length > 0 && request.tools.some(isServed)
    ? { ...request, tools: request.tools.filter((tool) => !isServed(tool)) }
    : request
}
