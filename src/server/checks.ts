// What a request must be before anything is done for it, in this order: an origin-form target, the right Host, no foreign page, a token, a
// route, a role. Each refuses by itself; the body is read only after all of them (body.ts).
import type { IncomingMessage } from 'node:http'
import { Refused, wrongMethod } from './refusals.ts'
import type { Principal, Role } from './wire.ts'
import { type Method, type Route, ROUTES, type RouteName } from './wire-routes.ts'

/** A target as it was asked for: its segments, each decoded once, and its query. */
export type Target = {
  readonly path: string
  readonly segments: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

const TARGET_CHARS_MAX = 8_192
/** What RFC 3986 allows in a path and a query. Anything else is ambiguous: no client of ours sends it. */
const PLAIN = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-Fa-f]{2})*$/
/** These stand for themselves: written otherwise, a path would have two spellings, and a proxy would know one of them. */
const SECOND_SPELLING = /%(?:2[DEde]|3\d|[46][1-9A-Fa-f]|[57][\dAa]|5[Ff]|7[Ee])/
const QUERY = /^(?:[A-Za-z0-9\-._~!$&'()*+,=:@/?[\]]|%[0-9A-Fa-f]{2})*$/

/** One parser, and it refuses what two parsers could read in two ways. */
export function targetOf(url: string | undefined): Target {
  const bad = (why: string): Refused => new Refused(400, 'bad_target', `The path of the request ${why}.`)
  if (url === undefined || !url.startsWith('/')) throw bad('must begin with "/": an absolute address is not taken')
  if (url.length > TARGET_CHARS_MAX) throw bad(`has more than ${TARGET_CHARS_MAX} characters`)
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  const search = at < 0 ? '' : url.slice(at + 1)
  if (!PLAIN.test(path) || path.includes('//')) throw bad('has characters or empty parts that it cannot have')
  if (SECOND_SPELLING.test(path)) throw bad('encodes characters that stand for themselves')
  if (!QUERY.test(search)) throw new Refused(400, 'bad_target', 'The query has characters that must be encoded.')
  const segments = path.slice(1).split('/').map(decoded)
  if (segments.some((one) => one === '.' || one === '..')) throw bad('has "." or ".." in it')
  return { path, segments, query: queryOf(search) }
}

function decoded(segment: string): string {
  try {
    const text = decodeURIComponent(segment)
    if (!text.includes('\0')) return text
  } catch {}
  throw new Refused(400, 'bad_target', 'The path of the request is not well encoded.')
}

/** A token in an address would stand in histories and logs. */
const SECRET = /^(?:access_)?token$|^authorization$|^api_?key$/i

function queryOf(search: string): Readonly<Record<string, string>> {
  const query: Record<string, string> = Object.create(null) as Record<string, string>
  for (const [name, value] of new URLSearchParams(search)) {
    if (SECRET.test(name) || TOKEN.test(value))
      throw new Refused(
        400,
        'bad_target',
        'A token does not belong in an address. Send it in the header Authorization.',
      )
    if (name in query) throw new Refused(400, 'bad_target', 'A name of the query is there twice.')
    query[name] = value
  }
  return query
}

/** The only one, and exactly one that is known, with its port. */
export function checkHost(
  request: IncomingMessage,
  isKnown: (host: string) => boolean,
  hosts: ReadonlySet<string> = new Set(),
): string {
  const given = valuesOf(request, 'host')
  const [host] = given
  if (host !== undefined && given.length === 1 && isKnown(host)) return host
  const known = hosts.size === 0 ? '' : ` It answers to ${[...hosts].join(', ')}.`
  throw new Refused(421, 'bad_host', `This server is not called that.${known}`)
}

/** Other ports of this machine are the same site, and other origins. */
export function checkOrigin(request: IncomingMessage, host: string, isPage: boolean): void {
  const foreign = new Refused(403, 'bad_origin', 'Requests from pages of other origins are not taken.')
  const origins = valuesOf(request, 'origin')
  const own = [`http://${host}`, `https://${host}`]
  if (origins.length > 1 || origins.some((origin) => !own.includes(origin))) throw foreign
  const [site = 'none', ...more] = valuesOf(request, 'sec-fetch-site')
  if (more.length === 0 && (site === 'none' || site === 'same-origin')) return
  // A link may lead here: the page itself holds nothing.
  const link = isPage && request.method === 'GET' && request.headers['sec-fetch-mode'] === 'navigate'
  if (!link || request.headers['sec-fetch-dest'] !== 'document') throw foreign
}

function valuesOf({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/

/** Only the header is looked at. */
export function tokenIn(request: IncomingMessage): string {
  const given = valuesOf(request, 'authorization')
  const [, token = ''] = /^Bearer ([^\s]+)$/.exec(given[0] ?? '') ?? []
  if (given.length === 1 && TOKEN.test(token)) return token
  throw unauthorized()
}

export function unauthorized(): Refused {
  const text = 'This needs a token: send it as "Authorization: Bearer TOKEN". `terret serve` prints it.'
  return new Refused(401, 'unauthorized', text)
}

export type Found = {
  readonly name: RouteName
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

const TABLE = Object.entries(ROUTES).map(([name, route]) => {
  return { name: name as RouteName, route, parts: route.path.slice(1).split('/') }
})

export function routeFor(method: string | undefined, { segments }: Target): Found {
  const fits = TABLE.filter(({ parts }) => matches(parts, segments))
  const found = fits.find(({ route }) => route.method === method)
  if (found) return { name: found.name, route: found.route, params: paramsOf(found.parts, segments) }
  if (fits.length === 0) throw new Refused(404, 'not_found', 'There is no such route. GET /v1/openapi.json lists them.')
  const methods: readonly Method[] = fits.map(({ route }) => route.method)
  throw wrongMethod(methods)
}

function matches(parts: readonly string[], segments: readonly string[]): boolean {
  return (
    parts.length === segments.length &&
    parts.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]))
  )
}

function paramsOf(parts: readonly string[], segments: readonly string[]): Readonly<Record<string, string>> {
  const named = parts.flatMap((part, i) => (part.startsWith(':') ? [[part.slice(1), segments[i] ?? ''] as const] : []))
  return Object.fromEntries(named)
}

/** Operators and approvers also view. Neither is the other. */
export function mayBe({ role }: Pick<Principal, 'role'>, wanted: Role): boolean {
  return role === 'admin' || role === wanted || wanted === 'viewer'
}

export function checkRole(principal: Principal, wanted: Role): void {
  if (mayBe(principal, wanted)) return
  throw new Refused(403, 'forbidden', `This needs a token with the role ${wanted}. Yours has ${principal.role}.`)
}
