// Reads and checks the body of a request: JSON only, bounded in length and depth, and valid by the route's schema. It
// is read after all other checks have passed.
import type { IncomingMessage } from 'node:http'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Json } from '../kernel/index.ts'
import { HttpRefusal } from './refusals.ts'
import { BODY_MAX, type Route } from './wire-routes.ts'
import type { WireSchema } from './wire-schemas.ts'

const DEPTH_MAX = 64
const READ_MS = 30_000

export type RequestFields = { readonly [name: string]: Json }

/** A missing body counts as an empty object: most routes need none. */
export async function readBody(request: IncomingMessage, route: Route): Promise<RequestFields> {
  if (!route.body) {
    if (hasBody(request)) throw new HttpRefusal(400, 'invalid_input', 'This route takes no body.')
    return {}
  }
  const value = parseJsonBody((await readJsonBody(request, route.bodyMax)) ?? '{}')
  checkSchema('body', route.body, value)
  return value as RequestFields
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** Reads the text of a JSON body, within bounds. Null: the request has no body. */
export async function readJsonBody(request: IncomingMessage, bytesMax = BODY_MAX): Promise<string | null> {
  const has = hasBody(request)
  const media = request.headers['content-type']
  if (media === undefined ? has : !/^application\/json(?:\s*;\s*charset=utf-8)?$/i.test(media))
    throw new HttpRefusal(415, 'media_type', 'Send JSON, with the content type application/json.')
  const text = has ? decodeBody(await readBodyBytes(request, bytesMax)) : null
  if (text !== null && isTooDeep(text))
    throw new HttpRefusal(400, 'invalid_input', `The body is nested deeper than ${DEPTH_MAX} levels.`)
  return text
}

function tooLargeRefusal(max: number): HttpRefusal {
  return new HttpRefusal(413, 'too_large', `The body may have ${max} bytes. Send less at once.`)
}

const READ_BEFORE =
  'The body of this request was read before it came here. Mount the server before body parsers such as express.json().'

/**
 * The bytes as they came, within bounds. Not a loop over the request: leaving one would close the connection before the
 * refusal is sent.
 */
export async function readBodyBytes(request: IncomingMessage, max: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > max) throw tooLargeRefusal(max)
  if (request.readableEnded) throw new HttpRefusal(500, 'invalid_config', READ_BEFORE)
  const chunks: Buffer[] = []
  let bytes = 0
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(
      () => fail(new HttpRefusal(400, 'invalid_input', 'The body did not come in time.')),
      READ_MS,
    )
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
    const gone = (): void => fail(new HttpRefusal(400, 'invalid_input', 'The body broke off.'))
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > max) fail(tooLargeRefusal(max))
      else chunks.push(chunk)
    }
    request.on('data', take).on('end', end).on('error', gone).on('close', gone)
  })
  return Buffer.concat(chunks)
}

export function decodeBody(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new HttpRefusal(400, 'invalid_input', 'The body is not UTF-8.')
  }
}

/** Counts the depth in the text: a parser would already have built the value. */
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

function parseJsonBody(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpRefusal(400, 'invalid_input', 'The body is not JSON.')
  }
}

const ajv = new Ajv2020({ strict: false, allErrors: false, coerceTypes: false, logger: false })
const coercingAjv = new Ajv2020({ strict: false, allErrors: false, coerceTypes: true, logger: false })
const compiledSchemas = new Map<WireSchema, ValidateFunction>()

/** Schemas are compiled at first use. */
function checkSchema(what: 'body' | 'query', schema: WireSchema, value: unknown): void {
  const check = compiledSchemas.get(schema) ?? (what === 'body' ? ajv : coercingAjv).compile(schema)
  compiledSchemas.set(schema, check)
  if (check(value)) return
  throw new HttpRefusal(400, 'invalid_input', `The ${what} is not right: ${describeSchemaError(check.errors?.[0])}.`)
}

/** The message contains field names from the schema or the sender, but no values. */
function describeSchemaError(error: ErrorObject | undefined): string {
  const { instancePath = '', message = 'it does not fit', params = {} } = error ?? {}
  const where = instancePath === '' ? '' : `${JSON.stringify(instancePath.slice(1))} `
  const { additionalProperty, allowedValues } = params as {
    additionalProperty?: string
    allowedValues?: readonly string[]
  }
  if (additionalProperty !== undefined) return `it has no field ${JSON.stringify(additionalProperty.slice(0, 100))}`
  return `${where}${message}${allowedValues ? `: ${allowedValues.join(', ')}` : ''}`
}

/** Query values arrive as strings and are coerced to numbers. */
export function readQuery(route: Route, given: Readonly<Record<string, string>>): RequestFields {
  const query = { ...given } as Record<string, Json>
  if (!route.query) {
    const [name] = Object.keys(query)
    if (name !== undefined)
      throw new HttpRefusal(
        400,
        'invalid_input',
        `This route has no ${JSON.stringify(name.slice(0, 100))} in its query.`,
      )
    return {}
  }
  checkSchema('query', route.query, query)
  return query
}
