# cmake -DOUT=FILE.cpp -DROOT=DIR -DFILES=a;b;… -P embed.cmake — writes bytes of files, plain and gzipped, as
# the table behind net/page_assets.h. A file's name in the table is its path from ROOT.
set(arrays "")
set(rows "")
set(index 0)

# array(NAME HEX): an array of these bytes.
function(array name hex)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  set(arrays "${arrays}constexpr char ${name}[] = {${bytes}0};\n" PARENT_SCOPE)
endfunction()

foreach(file IN LISTS FILES)
  file(RELATIVE_PATH name ${ROOT} ${file})
  file(READ ${file} hex HEX)
  array(file_${index} "${hex}")
  file(ARCHIVE_CREATE OUTPUT ${OUT}.gz PATHS ${file} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${OUT}.gz gzipped HEX)
  string(SUBSTRING "${gzipped}" 0 8 magic)
  string(SUBSTRING "${gzipped}" 16 -1 rest)
  set(gzipped "${magic}00000000${rest}")  # without the time, so that a build gives the same bytes again
  string(LENGTH "${hex}" plain_length)
  string(LENGTH "${gzipped}" gzipped_length)
  set(short_form "{}")
  if(gzipped_length LESS plain_length)
    array(gzipped_${index} "${gzipped}")
    set(short_form "{gzipped_${index}, sizeof gzipped_${index} - 1}")
  endif()
  string(APPEND rows "    {\"${name}\", {file_${index}, sizeof file_${index} - 1}, ${short_form}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(REMOVE ${OUT}.gz)
file(WRITE ${OUT} "#include \"net/page_assets.h\"

namespace weir::net {
namespace {
${arrays}
constexpr page_asset assets[] = {
${rows}};
}  // namespace

std::span<const page_asset> page_assets() { return assets; }

}  // namespace weir::net
")
