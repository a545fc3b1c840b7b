// The checks of a request, in this order: an origin-form target, a known Host, no foreign origin, a token, a route, a
// role. Each check throws its own refusal. The body is read after all of them (request-body.ts).
import type { IncomingMessage } from 'node:http'
import { HttpRefusal, methodRefusal } from './refusals.ts'
import type { Principal, Role } from './wire.ts'
import { type Method, type Route, ROUTES, type RouteName, SIGNED } from './wire-routes.ts'

/** The request's target: its path, the path's segments, each decoded once, and its query. */
export type RequestTarget = {
  readonly path: string
  readonly segments: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

const TARGET_CHARS_MAX = 8_192
/** The characters that RFC 3986 allows in a path or query. Our clients send no others, and others are ambiguous. */
const PLAIN = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-Fa-f]{2})*$/
/** Percent-encoded unreserved characters: they would give one path two spellings, and a proxy might check only one. */
const SECOND_SPELLING = /%(?:2[DEde]|3\d|[46][1-9A-Fa-f]|[57][\dAa]|5[Ff]|7[Ee])/
const QUERY = /^(?:[A-Za-z0-9\-._~!$&'()*+,=:@/?[\]]|%[0-9A-Fa-f]{2})*$/

/** The only parser of targets. It refuses whatever two parsers could read differently. */
export function parseTarget(url: string | undefined): RequestTarget {
  const bad = (why: string): HttpRefusal => new HttpRefusal(400, 'bad_target', `The path of the request ${why}.`)
  if (url === undefined || !url.startsWith('/')) throw bad('must begin with "/": an absolute address is not taken')
  if (url.length > TARGET_CHARS_MAX) throw bad(`has more than ${TARGET_CHARS_MAX} characters`)
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  const search = at < 0 ? '' : url.slice(at + 1)
  if (!PLAIN.test(path) || path.includes('//')) throw bad('has characters or empty parts that it cannot have')
  if (SECOND_SPELLING.test(path)) throw bad('encodes characters that stand for themselves')
  if (!QUERY.test(search)) throw new HttpRefusal(400, 'bad_target', 'The query has characters that must be encoded.')
  const segments = path.slice(1).split('/').map(decodeSegment)
  if (segments.some((one) => one === '.' || one === '..')) throw bad('has "." or ".." in it')
  return { path, segments, query: parseTargetQuery(search) }
}

function decodeSegment(segment: string): string {
  try {
    const text = decodeURIComponent(segment)
    if (!text.includes('\0')) return text
  } catch {}
  throw new HttpRefusal(400, 'bad_target', 'The path of the request is not well encoded.')
}

/** A token in an address would end up in histories and logs. */
const SECRET = /^(?:access_)?token$|^authorization$|^api_?key$/i

function parseTargetQuery(search: string): Readonly<Record<string, string>> {
  const query: Record<string, string> = Object.create(null) as Record<string, string>
  for (const [name, value] of new URLSearchParams(search)) {
    if (SECRET.test(name) || TOKEN.test(value))
      throw new HttpRefusal(
        400,
        'bad_target',
        'A token does not belong in an address. Send it in the header Authorization.',
      )
    if (name in query) throw new HttpRefusal(400, 'bad_target', 'A name of the query is there twice.')
    query[name] = value
  }
  return query
}

/** Requires exactly one Host header, with a known name and port. */
export function checkHost(
  request: IncomingMessage,
  isKnown: (host: string) => boolean,
  hosts: ReadonlySet<string> = new Set(),
): string {
  const given = headerValues(request, 'host')
  const [host] = given
  if (host !== undefined && given.length === 1 && isKnown(host)) return host
  const known = hosts.size === 0 ? '' : ` It answers to ${[...hosts].join(', ')}.`
  throw new HttpRefusal(421, 'bad_host', `This server is not called that.${known}`)
}

/** Other ports of this machine are the same site, but other origins. */
export function checkRequestOrigin(request: IncomingMessage, host: string, isPage: boolean): void {
  const foreign = new HttpRefusal(403, 'bad_origin', 'Requests from pages of other origins are not taken.')
  const origins = headerValues(request, 'origin')
  const own = [`http://${host}`, `https://${host}`]
  if (origins.length > 1 || origins.some((origin) => !own.includes(origin))) throw foreign
  const [site = 'none', ...more] = headerValues(request, 'sec-fetch-site')
  if (more.length === 0 && (site === 'none' || site === 'same-origin')) return
  // A link from another site may lead to a page, because the page itself holds no data.
  const link = isPage && request.method === 'GET' && request.headers['sec-fetch-mode'] === 'navigate'
  if (!link || request.headers['sec-fetch-dest'] !== 'document') throw foreign
}

/** All values of a header, by its name in lower case. */
export function headerValues({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/

/** The token is read only from the header. */
export function readRequestToken(request: IncomingMessage): string {
  const given = headerValues(request, 'authorization')
  const [, token = ''] = /^Bearer ([^\s]+)$/.exec(given[0] ?? '') ?? []
  if (given.length === 1 && TOKEN.test(token)) return token
  throw tokenRefusal()
}

export function tokenRefusal(): HttpRefusal {
  const text = 'This needs a token: send it as "Authorization: Bearer TOKEN". `terret serve` prints it.'
  return new HttpRefusal(401, 'unauthorized', text)
}

export type RouteMatch = {
  readonly name: RouteName
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

const TABLE = Object.entries(ROUTES).map(([name, route]) => {
  return { name: name as RouteName, route, parts: route.path.slice(1).split('/') }
})

export function matchRoute(method: string | undefined, { segments }: RequestTarget): RouteMatch {
  const fits = TABLE.filter(({ parts }) => fitsRoute(parts, segments))
  const found = fits.find(({ route }) => route.method === method)
  if (found) return { name: found.name, route: found.route, params: pathParams(found.parts, segments) }
  if (fits.length === 0)
    throw new HttpRefusal(404, 'not_found', 'There is no such route. GET /v1/openapi.json lists them.')
  const methods: readonly Method[] = fits.map(({ route }) => route.method)
  throw methodRefusal(methods)
}

function fitsRoute(parts: readonly string[], segments: readonly string[]): boolean {
  return (
    parts.length === segments.length &&
    parts.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]))
  )
}

function pathParams(parts: readonly string[], segments: readonly string[]): Readonly<Record<string, string>> {
  const named = parts.flatMap((part, i) => (part.startsWith(':') ? [[part.slice(1), segments[i] ?? ''] as const] : []))
  return Object.fromEntries(named)
}

/** Operators and approvers can also view. Neither role includes the other. */
export function includesRole({ role }: Pick<Principal, 'role'>, wanted: Role): boolean {
  return role === 'admin' || role === wanted || wanted === 'viewer'
}

/** The route of a request whose signature is its credential; null for all that need a token. */
export function findSignedRoute(method: string | undefined, { segments }: RequestTarget): RouteMatch | null {
  const found = TABLE.find(({ route, parts }) => route.role === SIGNED && fitsRoute(parts, segments))
  if (found === undefined || found.route.method !== method) return null
  return { name: found.name, route: found.route, params: pathParams(found.parts, segments) }
}

export function checkRole(principal: Principal, wanted: Route['role']): void {
  if (wanted === SIGNED || includesRole(principal, wanted)) return
  throw new HttpRefusal(403, 'forbidden', `This needs a token with the role ${wanted}. Yours has ${principal.role}.`)
}
