import { expect, it } from 'vitest'
import { idsDownTo, isChildId, rootIdOf } from '../../src/view/ids.ts'

it('B-ID-8: an id with "~" is that of a child only with the end that a call gives', () => {
  expect(idsDownTo('a~3.0~12.1.4')).toEqual(['a', 'a~3.0', 'a~3.0~12.1.4'])
  for (const root of ['a', 'a~b', 'a~posing', '~3', 'a~0.1', 'a~3.0x']) {
    expect([root, isChildId(root), rootIdOf(root)]).toEqual([root, false, root])
  }
})
