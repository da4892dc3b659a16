// Who a member is: its virtual host, balancer, name and socket.
//
// Purpose: the key of the table. In a slot it is read and written byte by byte through atomics: a slot that the parent
// frees may get its next identity while somebody still looks at the last one.
// Thread safety: what stands in a slot may change meanwhile, so callers of same() and copy() check afterwards that the
// slot was not reused (bind(), read_identity()).
// Invariants: text ends with a zero within its field, in a half-written identity too.
#ifndef CIRCUITBREAKER_SHM_IDENTITY_HPP
#define CIRCUITBREAKER_SHM_IDENTITY_HPP

#include "layout.hpp"

namespace cb::shm {

/// Fills an identity; text that is too long makes it invalid (false), rather than merging two members.
[[nodiscard]] bool make_identity(Identity& identity, std::uint64_t vhost, const char* balancer, const char* name,
                                 const char* uds_path) noexcept;
/// FNV-1a over `size` bytes, for identities and vhosts.
[[nodiscard]] std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) noexcept;

[[nodiscard]] bool same(const Identity& in_slot, const Identity& identity) noexcept;
void copy(Identity& identity, const Identity& in_slot) noexcept;
void assign(Identity& in_slot, const Identity& identity) noexcept;

}  // namespace cb::shm

#endif
