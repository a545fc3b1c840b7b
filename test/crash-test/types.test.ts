// The types of a crash test: the world is inferred from what makes it. What must not compile is checked by the compiler.
import { expect, it } from 'vitest'
import { memory, scripted } from '../../src/index.ts'
import { crashTest, type CrashReport, type CrashAgent } from '../../src/testing/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only if the first type is the second. */
function same<A, B>(_is: Same<A, B>): void {}

const model = scripted(() => 'Hello.')

it('B-CRASHTEST-14: options gets the world that world makes, here or later, and takes no store of its own', async () => {
  const open = async (folder: string) => ({ folder, rows: [1, 2], look: () => [1, 2] })
  const report = await crashTest({
    world: ({ folder }) => open(folder),
    options: (world) => {
      same<typeof world, { folder: string; rows: number[]; look: () => number[] }>(true)
      return { model }
    },
    run: 'Hi.',
    people: ({ tool }) => (tool === 'ask_user' ? { content: 'yes' } : { allow: true, why: 'I looked.' }),
  })
  same<typeof report, CrashReport>(true)
  expect(report.passed).toBe(true)
  // @ts-expect-error the test has a store of its own
  const agent: CrashAgent = { model, store: memory() }
  expect(agent).toBeDefined()
  const wrong: readonly (() => unknown)[] = [
    // @ts-expect-error a world says what it holds
    () => crashTest({ world: () => ({ rows: [] }), options: () => ({ model }), run: 'Hi.' }),
    // @ts-expect-error a person allows or answers
    () => crashTest({ world: () => ({ look: () => 1 }), options: () => ({ model }), run: 'Hi.', people: () => true }),
  ]
  expect(wrong).toHaveLength(2)
})
