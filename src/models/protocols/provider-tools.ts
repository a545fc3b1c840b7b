// Tools that a provider runs itself, as they are named in code. Their calls and results are parts of the reply and are never run
// here. Which host has them and how it takes them is provider-forms.ts.
import type { Frozen } from '../../kernel/content.ts'
import { type Checks, count, filled, listOf, needed, oneOf, optionsOf, text, within } from '../../options.ts'

type Location = Frozen<{ city?: string; region?: string; country?: string; timezone?: string }>
export type Domains = Frozen<{ allowedDomains?: readonly string[]; blockedDomains?: readonly string[] }>

/** `maxUses` is of Anthropic, `contextSize` of OpenAI. */
export type WebSearchUse = Domains &
  Frozen<{ maxUses?: number; contextSize?: 'low' | 'medium' | 'high'; location?: Location }>
export type WebFetchUse = Domains & Frozen<{ maxUses?: number; contentTokensMax?: number; citations?: boolean }>
export type FileSearchUse = Frozen<{ vectorStores: readonly string[]; resultsMax?: number }>

export type ProviderTool =
  | ({ readonly type: 'web_search' } & WebSearchUse)
  | ({ readonly type: 'web_fetch' } & WebFetchUse)
  | { readonly type: 'code_execution' }
  | ({ readonly type: 'file_search' } & FileSearchUse)

const DOMAINS = { allowedDomains: listOf(filled), blockedDomains: listOf(filled) }
const LOCATION: Checks<Location> = { city: text, region: text, country: text, timezone: text }
const checkSearch = optionsOf<WebSearchUse>('webSearch', {
  ...DOMAINS,
  maxUses: count(1),
  contextSize: oneOf<'low' | 'medium' | 'high'>({ low: true, medium: true, high: true }),
  location: within<Location>(LOCATION),
})
const checkFetch = optionsOf<WebFetchUse>('webFetch', {
  ...DOMAINS,
  maxUses: count(1),
  contentTokensMax: count(1),
  citations: (value) => (typeof value === 'boolean' ? null : 'must be true or false'),
})
const checkFiles = optionsOf<FileSearchUse>('fileSearch', {
  vectorStores: needed(listOf(filled), 'Name the vector stores to search.'),
  resultsMax: count(1, 50),
})

const checkCode = optionsOf<object>('codeExecution', {})
export const CHECKS = {
  web_search: checkSearch,
  web_fetch: checkFetch,
  code_execution: checkCode,
  file_search: checkFiles,
}

/** The web search of the provider. */
export function webSearch(options: WebSearchUse = {}): ProviderTool {
  checkSearch(options)
  return { type: 'web_search', ...options }
}

/** The provider reads pages by their address (Anthropic). */
export function webFetch(options: WebFetchUse = {}): ProviderTool {
  checkFetch(options)
  return { type: 'web_fetch', ...options }
}

/** The provider runs code in a sandbox of its own: Anthropic's code execution, OpenAI's code interpreter. */
export function codeExecution(): ProviderTool {
  return { type: 'code_execution' }
}

/** The provider searches files that were uploaded to it (OpenAI). */
export function fileSearch(options: FileSearchUse): ProviderTool {
  checkFiles(options)
  return { type: 'file_search', ...options }
}
