// A whole play with several harms that it could do: with the defences none of them may be done, and without them each must be. It
// holds no play itself.
import type { Case, Need } from './case.ts'
import type { World } from './world.ts'

/** What could be done to the world, as words that end "it …", and whether it was. */
export type Harm = readonly [what: string, isDone: (world: World) => boolean | Promise<boolean>]

type Play = {
  /** What the hostile side is, as a sentence. */
  readonly name: string
  readonly needs?: readonly Need[]
  readonly play: (world: World) => Promise<unknown>
  /** Whether the play came to its end: a world in which nothing happened is whole, and shows nothing. */
  readonly happened: (world: World) => boolean
  readonly harms: readonly Harm[]
}

export function scenario({ name, needs = [], play, happened, harms }: Play): Case {
  return {
    name,
    needs,
    attack: play,
    harmed: async (world) => {
      if (!happened(world)) throw new Error('The play did not come to its end, so it shows nothing.')
      const looked = await Promise.all(harms.map(async ([what, isDone]) => ({ what, isDone: await isDone(world) })))
      const done = looked.filter(({ isDone }) => isDone)
      const left = looked.filter(({ isDone }) => !isDone)
      if (world.defended) world.notes.push(...done.map(({ what }) => `defended: it ${what}`))
      else world.notes.push(...left.map(({ what }) => `control: it did not do this: it ${what}`))
      return world.defended ? done.length > 0 : left.length === 0
    },
  }
}
