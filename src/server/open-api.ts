// The OpenAPI 3.1 document of a server, written from the table of routes.
import type { Json } from '../kernel/index.ts'
import { type Route, ROUTES } from './wire-routes.ts'
import { ANSWERS, type Schema } from './wire-schemas.ts'

export function openApi(version: string): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const [name, route] of Object.entries(ROUTES)) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(name, route) }
  }
  return {
    openapi: '3.1.0',
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    info: { title: 'terret', version, description: 'Sessions of a terret server.' },
    security: [{ token: [] }],
    paths,
    components: { schemas: ANSWERS, securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  }
}

function operationOf(name: string, route: Route): Json {
  const { says, role, status, body } = route
  return {
    operationId: name,
    summary: says,
    description: `Role: ${role}.`,
    parameters: parametersOf(route),
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    responses: {
      [status]: { description: says, content: contentOf(route) },
      default: {
        description: 'refused',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  }
}

function parametersOf({ path, query, keyed }: Route): Json {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } }
  })
  const asked = Object.entries((query?.['properties'] ?? {}) as Readonly<Record<string, Schema>>)
  const inQuery = asked.map(([name, schema]) => ({ name, in: 'query', schema }))
  const key = { name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 255 } }
  return [...inPath, ...inQuery, ...(keyed ? [key] : [])]
}

function contentOf({ answer }: Route): Json {
  if (answer === 'stream') return { 'text/event-stream': { schema: { type: 'string' } } }
  if (answer === 'text') return { 'text/plain': { schema: { type: 'string' } } }
  if (answer === 'bytes') return { 'application/octet-stream': {} }
  return { 'application/json': { schema: { $ref: `#/components/schemas/${answer}` } } }
}
