// The mechanical mutations that neither the simulator nor a unit test may see, and why. A survivor that is not here fails the run of
// `npm run sim -- --mutate`; an entry that fits no line any more fails a test.
import type { Mutation } from './mutations.ts'

export type Survivor = Pick<Mutation, 'file' | 'was' | 'becomes'> & { readonly why: string }

export const SURVIVORS: readonly Survivor[] = [
  {
    file: 'src/kernel/result.ts',
    was: 'const { orders, awaits, since = 0, until = 0 } = outsideOf(proposal) ?? {}',
    becomes: 'const { orders, awaits, since = 0, until = (0 + 1) } = outsideOf(proposal) ?? {}',
    why: 'A call that waits has its times; all others are told apart in the next line, which reads neither of them.',
  },
]
