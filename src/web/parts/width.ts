// The current width of an element.
import { type RefObject, useEffect, useState } from 'react'

export function useWidth(place: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(320)
  useEffect(() => {
    if (!place.current) return
    const sized = new ResizeObserver(([entry]) => entry && setWidth(Math.round(entry.contentRect.width)))
    sized.observe(place.current)
    return () => sized.disconnect()
  }, [place])
  return width
}
