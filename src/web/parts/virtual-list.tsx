// A virtual list of any length: only visible rows are in the document. One row is chosen, by mouse or keys. Rows may
// differ in height.
import { type ReactNode, useEffect, useRef } from 'react'
import { VList, type VListHandle } from 'virtua'

export type ListProps<T> = {
  /** The label for screen readers. */
  readonly label: string
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
  readonly row: (item: T, chosen: boolean) => ReactNode
  readonly chosen?: string | null
  /** Called near the end, to load more. */
  readonly onEnd?: () => void
  /** Stays at the end while the list grows, until the person scrolls up. */
  readonly sticks?: boolean
}

const NEAR_END_PX = 600

/** Browsers limit heights to about 33 million pixels, so pass at most 20,000 rows. */
export function List<T>({ label, items, keyOf, row, chosen = null, onEnd, sticks = false }: ListProps<T>) {
  const handle = useRef<VListHandle>(null)
  const atEnd = useRef(true)
  const index = chosen === null ? -1 : items.findIndex((item) => keyOf(item) === chosen)
  useEffect(() => {
    if (index >= 0) handle.current?.scrollToIndex(index, { align: 'nearest' })
  }, [index])
  useEffect(() => {
    if (sticks && atEnd.current) handle.current?.scrollToIndex(items.length - 1, { align: 'end' })
  }, [sticks, items])
  const onScroll = (offset: number): void => {
    const { scrollSize = 0, viewportSize = 0 } = handle.current ?? {}
    const left = scrollSize - viewportSize - offset
    atEnd.current = left < 4
    if (left < NEAR_END_PX) onEnd?.()
  }
  return (
    <VList ref={handle} className="list" role="list" aria-label={label} tabIndex={0} onScroll={onScroll}>
      {items.map((item) => {
        const key = keyOf(item)
        return (
          <div key={key} role="listitem" className={key === chosen ? 'list-row chosen' : 'list-row'}>
            {row(item, key === chosen)}
          </div>
        )
      })}
    </VList>
  )
}
