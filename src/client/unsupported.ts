// Refuses what the library can do and no route of a server carries. No option is dropped silently.
import { Fault } from '../kernel/index.ts'

/** `what` is a verb or an option, as its caller wrote it. */
export function unsupportedFault(what: string): Fault {
  return new Fault('unsupported', `A server has no route for ${what}. Use a harness on the store itself for this.`)
}

/** Refuses the options among these names that are set. */
export function refuseOptions(verb: string, options: object, names: readonly string[]): void {
  const given = Object.entries(options).find(([name, value]) => value !== undefined && names.includes(name))
  if (given) throw unsupportedFault(`the option "${given[0]}" of ${verb}`)
}
