// Rows that a JSON text points to: an error often names the value that it speaks of as a path, `["items", 58, "price"]`,
// `/items/58/price` or `items[58].price`. The rows on such a path matter, wherever they stand.
import type { Json } from '../../kernel/content.ts'
import { isObject, type JsonObject } from '../../view/json.ts'

const PATHS_MAX = 50
const STEPS_MAX = 16
const PATH_CHARS_MAX = 200
/** Under these names a text may be a path. */
const PATH_KEYS = ['path', 'pointer', 'instancePath', 'field', 'location'] as const

type Path = readonly (string | number)[]

/** Paths that were found, while the values of a text are looked at. */
export class PathsFound {
  readonly #paths: Path[] = []

  /** A list of names and places, such as `["items", 58, "price"]`. */
  addList(list: readonly Json[]): void {
    if (list.length < 2 || list.length > STEPS_MAX || this.#paths.length >= PATHS_MAX) return
    if (typeof list[0] !== 'string' || !list.some(Number.isInteger)) return
    if (list.every((step) => typeof step === 'string' || Number.isInteger(step))) this.#paths.push(list as Path)
  }

  /** A text such as `/items/58/price` or `items[58].price`. */
  addFields(fields: JsonObject): void {
    if (this.#paths.length >= PATHS_MAX) return
    for (const key of PATH_KEYS) {
      const said = fields[key]
      if (typeof said !== 'string' || said.length > PATH_CHARS_MAX || !/[[./]\d/.test(said)) continue
      const steps = said.split(/[/.[\]]+/).filter((step) => step !== '' && step !== '#' && step !== '$')
      this.addList(steps.map((step) => (/^\d{1,7}$/.test(step) ? Number(step) : step)))
    }
  }

  /** Rows by the lists that hold them. A path begins at the text's top, or one level below it. */
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

/** The lists on a path with the places in them; none if the path leads nowhere before its first place. */
function followPath(start: Json, steps: Path): readonly (readonly [list: Json, place: number])[] {
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
