// A part of the pages that is loaded when it is shown first.
import { type ComponentType, lazy } from 'react'

export function later<Props extends object>(load: () => Promise<ComponentType<Props>>) {
  return lazy(async () => ({ default: await load() }))
}
