// Selecting a range of the waterfall by dragging: with a mouse anywhere on the bars, with a finger only on the axis,
// because a finger on the rows scrolls.
import { type MouseEvent, type PointerEvent, type RefObject, useRef, useState } from 'react'

/** A shorter drag is a click. */
const LEAST_PX = 5

type SelectedRange = { readonly left: number; readonly width: number }

/** `onRange`: called with the two ends, from 0 to 1 of the axis. */
export function useRangeDrag(axis: RefObject<HTMLElement | null>, onRange: (a: number, b: number) => void) {
  const from = useRef<number | null>(null)
  const dragged = useRef(false)
  const [selected, setSelected] = useState<SelectedRange | null>(null)

  const placeOf = (event: PointerEvent): number | null => {
    const { left = 0, width = 0 } = axis.current?.getBoundingClientRect() ?? {}
    const px = event.clientX - left
    return width > 0 && px >= 0 && px <= width ? px : null
  }
  const down = (event: PointerEvent): void => {
    dragged.current = false
    const isOnAxis = axis.current?.contains(event.target as Node) === true
    if (event.button === 0 && (event.pointerType === 'mouse' || isOnAxis)) from.current = placeOf(event)
  }
  const move = (event: PointerEvent): void => {
    const start = from.current
    if (start === null) return
    const { left = 0, width = 0 } = axis.current?.getBoundingClientRect() ?? {}
    const px = Math.min(width, Math.max(0, event.clientX - left))
    if (!dragged.current && Math.abs(px - start) < LEAST_PX) return
    if (!dragged.current) event.currentTarget.setPointerCapture(event.pointerId)
    dragged.current = true
    const own = event.currentTarget.getBoundingClientRect().left
    setSelected({ left: left - own + Math.min(start, px), width: Math.abs(px - start) })
  }
  const up = (event: PointerEvent): void => {
    const start = from.current
    from.current = null
    setSelected(null)
    const { left = 0, width = 1 } = axis.current?.getBoundingClientRect() ?? {}
    if (start !== null && dragged.current) onRange(start / width, (event.clientX - left) / width)
  }
  /** The click at the end of a drag must not choose a bar. */
  const click = (event: MouseEvent): void => {
    if (dragged.current) event.stopPropagation()
    dragged.current = false
  }
  const cancel = (): void => {
    from.current = null
    setSelected(null)
  }
  return {
    selected,
    handlers: {
      onPointerDown: down,
      onPointerMove: move,
      onPointerUp: up,
      onPointerCancel: cancel,
      onClickCapture: click,
    },
  }
}
