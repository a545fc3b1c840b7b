// Builds the OpenAPI 3.1 document of a server: the routes, the schemas of requests and answers, and the event types,
// which come from the schema that checks imported files.
import { SCHEMAS } from '../archive/event-schema.ts'
import type { Json } from '../kernel/index.ts'
import { ANSWER_SCHEMAS } from './wire-answers.ts'
import { type Route, ROUTES, SIGNED } from './wire-routes.ts'
import type { WireSchema } from './wire-schemas.ts'

/** `url`: the base of the routes. A path is relative to the address of the document. */
export function openApi(version: string, url: string): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const [name, route] of Object.entries(ROUTES)) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(name, route) }
  }
  return {
    openapi: '3.1.0',
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    info: { title: 'terret', version, description: 'Sessions of a terret server.' },
    servers: [{ url }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: { ...ANSWER_SCHEMAS, ...eventTypes(), Event: eventUnion() },
      responses: { Refused: refusalEntry('refused'), WrongMethod: wrongMethodEntry },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  }
}

function operationOf(name: string, route: Route): Json {
  const { says, role, status } = route
  const body = name === 'import' ? componentRef('Portable') : route.body
  return {
    operationId: name,
    summary: says,
    description: role === SIGNED ? 'The signature of the delivery is its credential.' : `Role: ${role}.`,
    ...(role === SIGNED ? { security: [], requestBody: { content: { '*/*': {} } } } : {}),
    parameters: parametersOf(route),
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    responses: {
      [status]: { description: says, content: contentOf(route) },
      405: { $ref: '#/components/responses/WrongMethod' },
      default: { $ref: '#/components/responses/Refused' },
    },
  }
}

function refusalEntry(description: string): WireSchema {
  return { description, content: { 'application/json': { schema: componentRef('Error') } } }
}

const wrongMethodEntry: WireSchema = {
  ...refusalEntry('the path is known, and takes another method'),
  headers: { Allow: { description: 'the methods that it takes', required: true, schema: { type: 'string' } } },
}

function parametersOf({ path, query, keyed }: Route): Json {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } }
  })
  const asked = Object.entries((query?.['properties'] ?? {}) as Readonly<Record<string, WireSchema>>)
  const inQuery = asked.map(([name, schema]) => ({ name, in: 'query', schema }))
  const key = { name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 255 } }
  return [...inPath, ...inQuery, ...(keyed ? [key] : [])]
}

function contentOf({ answer }: Route): Json {
  if (answer === 'stream') return { 'text/event-stream': { schema: { type: 'string' } } }
  if (answer === 'text') return { 'text/plain': { schema: { type: 'string' } } }
  if (answer === 'bytes') return { 'application/octet-stream': {} }
  return { 'application/json': { schema: componentRef(answer) } }
}

function componentRef(name: string): WireSchema {
  return { $ref: `#/components/schemas/${name}` }
}

/** A schema name of an answer may collide with the name of an event type. */
function componentName(type: string): string {
  return type !== 'Event' && Object.hasOwn(ANSWER_SCHEMAS, type) ? `Event${type}` : type
}

function eventTypes(): Record<string, Json> {
  return Object.fromEntries(Object.entries(SCHEMAS).map(([name, schema]) => [componentName(name), componentOf(schema)]))
}

/** A union discriminated by `type`, with one component per event type. */
function eventUnion(): WireSchema {
  const refs = (SCHEMAS['Event']?.oneOf ?? []).map(({ $ref = '' }) => $ref.slice(DEFS.length))
  const mapping = Object.fromEntries(refs.map((type) => [type, `#/components/schemas/${type}`]))
  return { oneOf: refs.map(componentRef), discriminator: { propertyName: 'type', mapping } }
}

const DEFS = '#/$defs/'

/**
 * The same schema inside the document: references point to its components, enumerated strings get `type: string` for
 * generators that require it, and objects are open like all answers.
 */
function componentOf(schema: unknown): Json {
  if (Array.isArray(schema)) return schema.map(componentOf)
  if (schema === null || typeof schema !== 'object') return schema as Json
  const fields: Record<string, Json> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === '$ref')
      fields[keyword] = componentRef(componentName(String(value).slice(DEFS.length)))['$ref'] ?? ''
    else if (keyword === 'properties') fields[keyword] = mapValues(value as object, componentOf)
    else if (keyword !== 'additionalProperties' || value !== false) fields[keyword] = componentOf(value)
  }
  const { const: word, enum: words } = schema as { readonly const?: unknown; readonly enum?: readonly unknown[] }
  const isText = typeof word === 'string' || words?.every((each) => typeof each === 'string') === true
  return isText ? { type: 'string', ...fields } : fields
}

function mapValues(values: object, change: (value: unknown) => Json): Record<string, Json> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]))
}
