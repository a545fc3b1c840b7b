// The body of a request: JSON and nothing else, no longer and no deeper than it may be, and as its schema says. It is read only after
// everything else about the request was right.
import type { IncomingMessage } from 'node:http'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Json } from '../kernel/index.ts'
import { Refused } from './refusals.ts'
import { BODY_MAX, type Route } from './wire-routes.ts'
import type { Schema } from './wire-schemas.ts'

const DEPTH_MAX = 64
const READ_MS = 30_000

export type Body = { readonly [name: string]: Json }

/** An absent body is an empty object: most routes need none. */
export async function readBody(request: IncomingMessage, route: Route): Promise<Body> {
  if (!route.body) {
    if (hasBody(request)) throw new Refused(400, 'invalid_input', 'This route takes no body.')
    return {}
  }
  const value = parsed((await readJson(request, route.bodyMax)) ?? '{}')
  checkSchema('body', route.body, value)
  return value as Body
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** The text of a body that says it is JSON, within bounds. Null: there is none. */
export async function readJson(request: IncomingMessage, bytesMax = BODY_MAX): Promise<string | null> {
  const has = hasBody(request)
  const media = request.headers['content-type']
  if (media === undefined ? has : !/^application\/json(?:\s*;\s*charset=utf-8)?$/i.test(media))
    throw new Refused(415, 'media_type', 'Send JSON, with the content type application/json.')
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax)
  const text = has ? await bytesOf(request, bytesMax) : null
  if (text !== null && isTooDeep(text))
    throw new Refused(400, 'invalid_input', `The body is nested deeper than ${DEPTH_MAX} levels.`)
  return text
}

function tooLarge(max: number): Refused {
  return new Refused(413, 'too_large', `The body may have ${max} bytes. Send less at once.`)
}

const READ_BEFORE =
  'The body of this request was read before it came here. Mount the server before body parsers such as express.json().'

/** Not a loop over the request: leaving one would close the connection before the refusal is sent. */
async function bytesOf(request: IncomingMessage, max: number): Promise<string> {
  if (request.readableEnded) throw new Refused(500, 'invalid_config', READ_BEFORE)
  const chunks: Buffer[] = []
  let bytes = 0
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => fail(new Refused(400, 'invalid_input', 'The body did not come in time.')), READ_MS)
    const done = (): void => {
      clearTimeout(late)
      request.off('data', take).off('end', end).off('error', gone).off('close', gone)
    }
    const fail = (error: Error): void => {
      done()
      request.resume()
      reject(error)
    }
    const end = (): void => {
      done()
      resolve()
    }
    const gone = (): void => fail(new Refused(400, 'invalid_input', 'The body broke off.'))
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > max) fail(tooLarge(max))
      else chunks.push(chunk)
    }
    request.on('data', take).on('end', end).on('error', gone).on('close', gone)
  })
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new Refused(400, 'invalid_input', 'The body is not UTF-8.')
  }
}

/** Counted in the text: a parser would have built it by then. */
export function isTooDeep(text: string): boolean {
  let depth = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const at = text.charCodeAt(i)
    if (quoted) {
      if (at === 0x5c) i++
      else if (at === 0x22) quoted = false
    } else if (at === 0x22) quoted = true
    else if (at === 0x7b || at === 0x5b) {
      if (++depth > DEPTH_MAX) return true
    } else if (at === 0x7d || at === 0x5d) depth--
  }
  return false
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refused(400, 'invalid_input', 'The body is not JSON.')
  }
}

const ajv = new Ajv2020({ strict: false, allErrors: false, coerceTypes: false, logger: false })
const coercing = new Ajv2020({ strict: false, allErrors: false, coerceTypes: true, logger: false })
const compiled = new Map<Schema, ValidateFunction>()

/** Compiled when it is used first. */
function checkSchema(what: 'body' | 'query', schema: Schema, value: unknown): void {
  const check = compiled.get(schema) ?? (what === 'body' ? ajv : coercing).compile(schema)
  compiled.set(schema, check)
  if (check(value)) return
  throw new Refused(400, 'invalid_input', `The ${what} is not right: ${wrongIn(check.errors?.[0])}.`)
}

/** Names come from the schema or from the sender; values are not repeated. */
function wrongIn(error: ErrorObject | undefined): string {
  const { instancePath = '', message = 'it does not fit', params = {} } = error ?? {}
  const where = instancePath === '' ? '' : `${JSON.stringify(instancePath.slice(1))} `
  const { additionalProperty, allowedValues } = params as {
    additionalProperty?: string
    allowedValues?: readonly string[]
  }
  if (additionalProperty !== undefined) return `it has no field ${JSON.stringify(additionalProperty.slice(0, 100))}`
  return `${where}${message}${allowedValues ? `: ${allowedValues.join(', ')}` : ''}`
}

/** Numbers of a query come as texts. */
export function readQuery(route: Route, given: Readonly<Record<string, string>>): Body {
  const query = { ...given } as Record<string, Json>
  if (!route.query) {
    const [name] = Object.keys(query)
    if (name !== undefined)
      throw new Refused(400, 'invalid_input', `This route has no ${JSON.stringify(name.slice(0, 100))} in its query.`)
    return {}
  }
  checkSchema('query', route.query, query)
  return query
}
