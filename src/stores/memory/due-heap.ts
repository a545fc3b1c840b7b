// Due times in memory: a heap that gives the earliest first. Entries that were moved or removed are dropped when they
// reach the top. It knows no leases and no clock: memory-store.ts does.

/** An item that can be due. Only the heap uses `turn`: it tells a current entry from a replaced one. */
export type DueItem = { readonly n: number; turn: number }
type DueEntry<T> = { readonly due: number; readonly item: T }
type HeapEntry<T> = DueEntry<T> & { readonly turn: number }

export class DueHeap<T extends DueItem> {
  #heap: HeapEntry<T>[] = []
  #live = new Set<T>()

  /** Replaces an earlier entry of the same item. */
  put(item: T, due: number): void {
    item.turn += 1
    this.#live.add(item)
    if (this.#heap.length > 2 * this.#live.size + 64) this.#prune()
    this.#heap.push({ due, item, turn: item.turn })
    this.#rise(this.#heap.length - 1)
  }

  remove(item: T): void {
    item.turn += 1
    this.#live.delete(item)
  }

  /** The earliest, or null. */
  first(): DueEntry<T> | null {
    for (let top = this.#heap[0]; top; top = this.#heap[0]) {
      if (top.turn === top.item.turn) return top
      this.#drop()
    }
    return null
  }

  /** The entries due by `until` that are `wanted`, the earliest first, at most `limit`. They stay in the heap. */
  upTo(until: number, limit: number, wanted: (item: T) => boolean = () => true): readonly DueEntry<T>[] {
    const seen: HeapEntry<T>[] = []
    const found: HeapEntry<T>[] = []
    for (let top = this.first(); top && top.due <= until && found.length < limit; top = this.first()) {
      const entry = this.#heap[0] as HeapEntry<T>
      seen.push(entry)
      if (wanted(entry.item)) found.push(entry)
      this.#drop()
    }
    for (const entry of seen) {
      this.#heap.push(entry)
      this.#rise(this.#heap.length - 1)
    }
    return found
  }

  #prune(): void {
    const kept = this.#heap.filter((entry) => entry.turn === entry.item.turn)
    this.#heap = kept.sort((a, b) => (comesBefore(a, b) ? -1 : 1))
  }

  #rise(from: number): void {
    const heap = this.#heap
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!this.#swapIf(comesBefore(heap[at], heap[parent]), at, parent)) return
      at = parent
    }
  }

  #drop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (heap.length === 0 || !last) return
    heap[0] = last
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      const child = left + 1 < heap.length && comesBefore(heap[left + 1], heap[left]) ? left + 1 : left
      if (child >= heap.length || !this.#swapIf(comesBefore(heap[child], heap[at]), child, at)) return
      at = child
    }
  }

  #swapIf(wanted: boolean, a: number, b: number): boolean {
    const [one, two] = [this.#heap[a], this.#heap[b]]
    if (!wanted || !one || !two) return false
    this.#heap[a] = two
    this.#heap[b] = one
    return true
  }
}

function comesBefore<T extends DueItem>(a: HeapEntry<T> | undefined, b: HeapEntry<T> | undefined): boolean {
  if (!a || !b) return false
  return a.due < b.due || (a.due === b.due && a.item.n < b.item.n)
}
