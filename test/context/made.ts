// Harnesses and stores of a test, closed after it.
import { afterEach } from 'vitest'
import { Harness, type HarnessOptions } from '../../src/index.ts'

/** What is put here is closed after the test, in this order. */
export const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

export function make(options: Partial<HarnessOptions> & Pick<HarnessOptions, 'model'>): Harness {
  const harness = new Harness(options)
  open.push(harness)
  return harness
}
