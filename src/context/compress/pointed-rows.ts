// Finds rows that a JSON text points to: an error often names the value at fault as a path, `["items", 58, "price"]`,
// `/items/58/price` or `items[58].price`. The rows on such a path are shown, wherever they stand.
import type { Json } from '../../kernel/content.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'

const PATHS_MAX = 50
const STEPS_MAX = 16
const PATH_CHARS_MAX = 200
/** A text under one of these keys may be a path. */
const PATH_KEYS = ['path', 'pointer', 'instancePath', 'field', 'location'] as const

type JsonPath = readonly (string | number)[]

/** Collects the paths in a text, while its values are read. */
export class PathCollector {
  readonly #paths: JsonPath[] = []

  /** Adds a list of keys and indexes, such as `["items", 58, "price"]`. */
  addList(list: readonly Json[]): void {
    if (list.length < 2 || list.length > STEPS_MAX || this.#paths.length >= PATHS_MAX) return
    if (typeof list[0] !== 'string' || !list.some(Number.isInteger)) return
    if (list.every((step) => typeof step === 'string' || Number.isInteger(step))) this.#paths.push(list as JsonPath)
  }

  /** Adds a text such as `/items/58/price` or `items[58].price`. */
  addFields(fields: JsonObject): void {
    if (this.#paths.length >= PATHS_MAX) return
    for (const key of PATH_KEYS) {
      const said = fields[key]
      if (typeof said !== 'string' || said.length > PATH_CHARS_MAX || !/[[./]\d/.test(said)) continue
      const steps = said.split(/[/.[\]]+/).filter((step) => step !== '' && step !== '#' && step !== '$')
      this.addList(steps.map((step) => (/^\d{1,7}$/.test(step) ? Number(step) : step)))
    }
  }

  /** The rows by the lists that hold them. A path begins at the root of the text, or one level below it. */
  rowsIn(root: Json): ReadonlyMap<Json, ReadonlySet<number>> {
    const rows = new Map<Json, Set<number>>()
    const starts = isObject(root) ? [root, ...Object.values(root).filter(isObject)] : [root]
    for (const path of this.#paths)
      for (const start of starts)
        for (const steps of [path, path.slice(1)])
          for (const [list, place] of followPath(start, steps)) {
            const known = rows.get(list)
            if (known === undefined) rows.set(list, new Set([place]))
            else known.add(place)
          }
    return rows
  }
}

/** The lists on a path with the indexes in them; none if the path breaks off before its first index. */
function followPath(start: Json, steps: JsonPath): readonly (readonly [list: Json, place: number])[] {
  const found: (readonly [Json, number])[] = []
  let at: Json | undefined = start
  for (const step of steps) {
    if (Array.isArray(at) && typeof step === 'number') {
      const list = at as readonly Json[]
      if (step >= 0 && step < list.length) found.push([at, step])
      at = list[step]
    } else if (isObject(at) && Object.hasOwn(at, String(step))) at = at[String(step)]
    else break
  }
  return found
}
