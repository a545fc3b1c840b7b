// What an attack case is, and how one is judged: played twice, with the defence and without it. It holds no case itself.
import { findSandbox } from '../../src/tools/shell/sandbox.ts'
import { World } from './world.ts'

/** Without what a case needs it is a named skip. */
export type Need = 'bubblewrap' | 'root'

export type Case = {
  /** What the hostile side does, as a sentence. */
  readonly name: string
  readonly needs?: readonly Need[]
  /** Plays the attack. `world.defended` says whether the defence is there; a throw is trouble and proves nothing. */
  readonly attack: (world: World) => Promise<unknown>
  /** Was the world harmed? Looks at files, sockets, processes and bytes, never at what an error says. */
  readonly harmed: (world: World) => boolean | Promise<boolean>
}

/** One row of the threat table. `width` is how many of its cases are played at a time. */
export type Row = {
  readonly row: number
  readonly title: string
  readonly cases: readonly Case[]
  readonly width?: number
}

/** The rows that come at one part of the product. */
export type Surface = { readonly name: string; readonly rows: readonly Row[] }

export type Verdict = {
  readonly name: string
  /** The world was whole with the defence. */
  readonly held: boolean
  /** The world was harmed without it: the case can fail. */
  readonly broken: boolean
  readonly skipped: Need | null
  readonly troubles: readonly string[]
}

const MISSING: Readonly<Record<Need, boolean>> = {
  bubblewrap: findSandbox('/tmp').type === 'none',
  root: process.getuid?.() !== 0,
}

export function missing({ needs = [] }: Case): Need | null {
  return needs.find((need) => MISSING[need]) ?? null
}

async function play(one: Case): Promise<Verdict> {
  const skipped = missing(one)
  if (skipped !== null) return { name: one.name, held: false, broken: false, skipped, troubles: [] }
  const troubles: string[] = []
  const harmed = async (defended: boolean): Promise<boolean | null> => {
    const world = await World.make(defended)
    try {
      await one.attack(world)
      const isHarmed = await one.harmed(world)
      if (isHarmed === defended) troubles.push(...world.notes)
      return isHarmed
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      troubles.push(`${defended ? 'defended' : 'control'}: ${text}`)
      return null
    } finally {
      await world.close()
    }
  }
  const held = (await harmed(true)) === false
  const broken = (await harmed(false)) === true
  return { name: one.name, held, broken, skipped, troubles }
}

/** Cases of a row, a few at a time. */
export async function playAll({ width = 4 }: Row, cases: readonly Case[]): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = []
  let next = 0
  const work = async (): Promise<void> => {
    for (let one = cases[next++]; one !== undefined; one = cases[next++]) verdicts.push(await play(one))
  }
  await Promise.all(Array.from({ length: width }, work))
  return verdicts
}
