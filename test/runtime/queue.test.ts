// The queue between a run and the code that iterates over its events.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { Queue } from '../../src/sessions/queue.ts'

function filled(...items: readonly string[]) {
  const queue = new Queue<string>()
  for (const item of items) queue.push(item)
  const left: string[] = []
  return { queue, left, iterator: queue.iterate(async () => void left.push('left')) }
}

describe('the queue', () => {
  it('B-STREAM-1: what was pushed comes out in order, also to several readers that ask before it is there', async () => {
    const { queue, iterator } = filled('a')
    const asked = [iterator.next(), iterator.next(), iterator.next(), iterator.next()]
    queue.push('b')
    await Promise.resolve()
    queue.push('c')
    queue.end()
    const values = (await Promise.all(asked)).map(({ value }) => value as unknown)
    expect(values).toEqual(['a', 'b', 'c', undefined])
  })

  it('B-STREAM-2: an error comes after what was pushed before it, once, and what is pushed after the end is dropped', async () => {
    const { queue, iterator, left } = filled('a')
    queue.fail(new Error('broken'))
    queue.push('late')
    expect((await iterator.next()).value).toBe('a')
    await expect(iterator.next()).rejects.toThrow('broken')
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
    await iterator.return?.()
    expect(left).toEqual([])
  })

  it('B-STREAM-3: a reader that stops early leaves once, one that reads to the end does not', async () => {
    const early = filled('a', 'b')
    for await (const item of early.iterator) {
      expect(item).toBe('a')
      break
    }
    await early.iterator.return?.()
    expect(early.left).toEqual(['left'])
    const whole = filled('a')
    whole.queue.end()
    const read: string[] = []
    for await (const item of whole.iterator) read.push(item)
    expect([read, whole.left]).toEqual([['a'], []])
  })

  it('B-STREAM-14: what was read is let go, also while the reader stays behind', async () => {
    const queue = new Queue<{ readonly n: number }>()
    const iterator = queue.iterate(async () => {})
    const first: WeakRef<object>[] = []
    for (let n = 0; n < 5_000; n++) {
      const item = { n }
      if (n < 10) first.push(new WeakRef(item))
      queue.push(item)
      // Ten behind, all the time.
      if (n >= 10) expect((await iterator.next()).value).toEqual({ n: n - 10 })
    }
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    expect(first.filter((ref) => ref.deref() !== undefined)).toEqual([])
    queue.end()
    const rest: number[] = []
    for await (const { n } of iterator) rest.push(n)
    expect(rest).toEqual(Array.from({ length: 10 }, (_, i) => 4_990 + i))
  })
})
