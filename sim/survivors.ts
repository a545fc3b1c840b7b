// The mechanical mutations that neither the simulator nor a unit test may see, and why. A survivor that is not here fails the run of
// `npm run sim -- --mutate`; an entry that fits no line any more fails a test.
import type { Mutation } from './mutations.ts'

export type Survivor = Pick<Mutation, 'file' | 'was' | 'becomes'> & { readonly why: string }

export const SURVIVORS: readonly Survivor[] = []
