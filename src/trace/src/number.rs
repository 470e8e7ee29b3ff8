//! Numbers as types of their own.

/// Defines a number as a type of its own, so that it can never be used in place of another: `Name(integer)` as a public tuple structure that prints, compares and
/// is serialised as the integer. `Name(integer), one per "what"` is also the place of something in a list with one element per *what*: slices and vectors can be indexed by it.
///
/// The crate that uses it needs `serde`.
///
/// ```
/// clc_trace::number! {
///     /// A rack of the machine.
///     Rack(u16), one per "rack"
/// }
///
/// let mut temperatures = vec![40, 50];
/// temperatures[Rack(1)] += 2;
/// assert_eq!((temperatures[Rack(1)], Rack(1).place()), (52, 1));
/// assert_eq!(format!("rack {}", Rack(1)), "rack 1");
/// ```
#[macro_export]
macro_rules! number {
    ($(#[$attribute:meta])* $name:ident($inner:ty)) => {
        $(#[$attribute])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize,
        )]
        #[repr(transparent)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
    ($(#[$attribute:meta])* $name:ident($inner:ty), one per $what:literal) => {
        $crate::number! {
            $(#[$attribute])*
            #[derive(Default)]
            $name($inner)
        }

        impl $name {
            #[doc = concat!("The place in a list with one element per ", $what, ".")]
            #[inline]
            pub fn place(self) -> usize {
                self.0 as usize
            }
        }

        impl<T> ::std::ops::Index<$name> for [T] {
            type Output = T;

            #[inline]
            fn index(&self, number: $name) -> &T {
                &self[number.place()]
            }
        }

        impl<T> ::std::ops::IndexMut<$name> for [T] {
            #[inline]
            fn index_mut(&mut self, number: $name) -> &mut T {
                &mut self[number.place()]
            }
        }

        impl<T> ::std::ops::Index<$name> for ::std::vec::Vec<T> {
            type Output = T;

            #[inline]
            fn index(&self, number: $name) -> &T {
                &self[number.place()]
            }
        }

        impl<T> ::std::ops::IndexMut<$name> for ::std::vec::Vec<T> {
            #[inline]
            fn index_mut(&mut self, number: $name) -> &mut T {
                &mut self[number.place()]
            }
        }
    };
}
