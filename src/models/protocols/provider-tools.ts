// Tools that a provider runs itself, under the names of the public API. Their calls and results are parts of the reply
// and are never run here. provider-forms.ts knows which host has them and in which form.
import type { Frozen } from '../../kernel/content.ts'
import {
  type Checks,
  countCheck,
  nonEmptyCheck,
  listCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  textCheck,
  optionsCheck,
} from '../../options.ts'

type SearchLocation = Frozen<{ city?: string; region?: string; country?: string; timezone?: string }>
export type DomainFilter = Frozen<{
  /** Only pages of these domains are read. Default: all. */
  allowedDomains?: readonly string[]
  /** Pages of these domains are not read. Default: none. */
  blockedDomains?: readonly string[]
}>

/** Options of `webSearch`: where it searches, and how much. */
export type WebSearchUse = DomainFilter &
  Frozen<{
    /** The most searches in one request. Only for Anthropic. */
    maxUses?: number
    /** How much of the pages the model reads. Only for OpenAI. */
    contextSize?: 'low' | 'medium' | 'high'
    /** Where the user is, for results that fit the place. */
    location?: SearchLocation
  }>
/** Options of `webFetch`: which domains may be read, and how much of them. */
export type WebFetchUse = DomainFilter &
  Frozen<{
    /** The most pages in one request. Default: no limit. */
    maxUses?: number
    /** Longer pages are cut at this number of tokens. Default: the provider's own. */
    contentTokensMax?: number
    /** Whether the answer cites the pages. Default: the provider's own. */
    citations?: boolean
  }>
/** Options of `fileSearch`: which stores of the provider are searched. */
export type FileSearchUse = Frozen<{
  /** The ids of the provider's vector stores to search. */
  vectorStores: readonly string[]
  /** The most results of one search, from 1 to 50. Default: the provider's own. */
  resultsMax?: number
}>

/**
 * A tool that the provider runs on its own machines. It is never asked about here, and its results come with the
 * answer.
 */
export type ProviderTool =
  | ({ readonly type: 'web_search' } & WebSearchUse)
  | ({ readonly type: 'web_fetch' } & WebFetchUse)
  | { readonly type: 'code_execution' }
  | ({ readonly type: 'file_search' } & FileSearchUse)

const DOMAINS = { allowedDomains: listCheck(nonEmptyCheck), blockedDomains: listCheck(nonEmptyCheck) }
const LOCATION: Checks<SearchLocation> = { city: textCheck, region: textCheck, country: textCheck, timezone: textCheck }
const checkSearch = optionsChecker<WebSearchUse>('webSearch', {
  ...DOMAINS,
  maxUses: countCheck(1),
  contextSize: oneOf<'low' | 'medium' | 'high'>({ low: true, medium: true, high: true }),
  location: optionsCheck<SearchLocation>(LOCATION),
})
const checkFetch = optionsChecker<WebFetchUse>('webFetch', {
  ...DOMAINS,
  maxUses: countCheck(1),
  contentTokensMax: countCheck(1),
  citations: (value) => (typeof value === 'boolean' ? null : 'must be true or false'),
})
const checkFiles = optionsChecker<FileSearchUse>('fileSearch', {
  vectorStores: requiredCheck(listCheck(nonEmptyCheck), 'Name the vector stores to search.'),
  resultsMax: countCheck(1, 50),
})

const checkCode = optionsChecker<object>('codeExecution', {})
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
