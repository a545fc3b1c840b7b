// Arguments that a tool wants repeated as HTTP headers, which the newest revision allows: is its wish one that may be granted?
// The SDK sends them. A tool whose wish breaks the rules must not be offered.
import { isObject } from '../../view/json.ts'

const KEY = 'x-mcp-header'
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']

/** Throws what is wrong with it. Only a property of an object, of a property…, may have a header, and each a name of its own. */
export function checkHeaders(schema: unknown): void {
  const names = new Set<string>()
  const visit = (value: unknown, isProperty: boolean): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, false)
    if (!isObject(value)) return
    if (Object.hasOwn(value, KEY)) {
      const name = value[KEY]
      if (!isProperty || typeof name !== 'string' || !TOKEN.test(name) || !TYPES.includes(value['type']))
        throw refused()
      if (names.has(name.toLowerCase())) throw refused()
      names.add(name.toLowerCase())
    }
    for (const [key, item] of Object.entries(value)) {
      if (key !== 'properties' || !isObject(item)) visit(item, false)
      else for (const property of Object.values(item)) visit(property, isProperty)
    }
  }
  visit(schema, true)
}

function refused(): Error {
  return new Error(`its "${KEY}" is not valid`)
}
